// SPDX-License-Identifier: GPL-2.0-or-later

// threads reports what one goroutine that is bound to its thread waits for, ROUNDS times MS
// milliseconds each: for another goroutine, which sleeps meanwhile. Nothing else has any work.
package main

import (
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

const clockMonotonic = 1

// monotonicNs is CLOCK_MONOTONIC, which package time does not show.
func monotonicNs() int64 {
	var now syscall.Timespec

	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

type report struct {
	Tid    int        `json:"tid"`
	Offset int64      `json:"offset_ns"`
	Slept  int64      `json:"slept_ns"`
	Waits  [][2]int64 `json:"waits"`
}

func bound(answers, questions chan bool, rounds int, result chan report) {
	runtime.LockOSThread()
	said := report{Tid: syscall.Gettid()}
	for i := 0; i < rounds; i++ {
		questions <- true
		begin := monotonicNs()
		<-answers
		said.Waits = append(said.Waits, [2]int64{begin, monotonicNs()})
	}
	close(questions)
	result <- said
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[2])
	ms, _ := strconv.Atoi(os.Args[3])
	answers, questions, result := make(chan bool), make(chan bool), make(chan report)

	runtime.GOMAXPROCS(4)
	go bound(answers, questions, rounds, result)
	for range questions {
		time.Sleep(time.Duration(ms) * time.Millisecond)
		answers <- true
	}
	said := <-result
	said.Slept = int64(rounds*ms) * int64(time.Millisecond)
	said.Offset = time.Now().UnixNano() - monotonicNs()
	text, err := json.Marshal(said)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(os.Args[1], text, 0o644); err != nil {
		panic(err)
	}
}
