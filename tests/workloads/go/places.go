// SPDX-License-Identifier: GPL-2.0-or-later

// places does what places.c does, in Go.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"time"
)

var in = bufio.NewReaderSize(os.Stdin, 16)

//go:noinline
func read_config() string {
	line, _ := in.ReadString('\n')
	return line + "."
}

//go:noinline
func read_reply() string {
	line, _ := in.ReadString('\n')
	return line + "."
}

//go:noinline
func write_config(pause time.Duration) int {
	time.Sleep(pause)
	n, _ := fmt.Fprintln(os.Stdout, "config")
	return n + 1
}

//go:noinline
func write_reply(pause time.Duration) int {
	time.Sleep(pause)
	n, _ := fmt.Fprintln(os.Stdout, "reply")
	return n + 1
}

func main() {
	if os.Args[1] == "read" {
		if read_config() == "." || read_reply() == "." {
			os.Exit(1)
		}
		return
	}
	ms, _ := strconv.Atoi(os.Args[2])
	pause := time.Duration(ms) * time.Millisecond
	if write_config(pause) == 1 || write_reply(pause) == 1 {
		os.Exit(1)
	}
}
