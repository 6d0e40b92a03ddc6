// SPDX-License-Identifier: GPL-2.0-or-later

// callers - sleeps and computes at places whose callers Go's own run-time system knows, and appends
// them to the file that $WALLPROF_ANNOUNCE names, a line each:
//
//	{"tid":1,"kind":"sleep","begin_ns":1,"end_ns":2,"offset_ns":3,
//	 "frames":[{"function":"main.nap","file":"/x/callers.go","line":7}, …]}
//
// the innermost first, with inlined calls. Times are CLOCK_MONOTONIC, offset_ns is what
// CLOCK_REALTIME is more. Meanwhile others allocate, wait for each other and for the collector, and
// ROUNDS programs are started.
//
//	callers ROUNDS MS
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

type frame struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
}

type interval struct {
	Tid    int     `json:"tid"`
	Kind   string  `json:"kind"`
	Begin  int64   `json:"begin_ns"`
	End    int64   `json:"end_ns"`
	Offset int64   `json:"offset_ns"`
	Frames []frame `json:"frames"`
}

var reported struct {
	sync.Mutex
	intervals []interval
}

func clock(number uintptr) int64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, number, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

//go:noinline
func callers() []frame {
	var places [64]uintptr
	var list []frame
	frames := runtime.CallersFrames(places[:runtime.Callers(2, places[:])])
	for {
		f, more := frames.Next()
		list = append(list, frame{f.Function, f.File, f.Line})
		if !more {
			return list
		}
	}
}

//go:noinline
func report(kind string, begin, end int64, frames []frame) {
	reported.Lock()
	defer reported.Unlock()
	reported.intervals = append(reported.intervals, interval{syscall.Gettid(), kind, begin, end,
		clock(0) - clock(1), frames})
}

// The call and the wait are in one line (gofmt would part them), because callers() reports its line.
//
//go:noinline
func nap(ms int) {
	t := syscall.NsecToTimespec(int64(ms) * 1e6)
	frames, begin := callers(), clock(1); syscall.Nanosleep(&t, nil); end := clock(1)
	report("sleep", begin, end, frames)
}

//go:noinline
func spin(ms int) {
	frames, begin := callers(), clock(1)
	sum := 0
	for start := clock(3); clock(3)-start < int64(ms)*1e6; { // of the thread's own time
		for i := 0; i < 1e5; i++ {
			sum += i * sum
		}
	}
	end := clock(1)
	report("spin", begin, end, frames)
	runtime.KeepAlive(sum)
}

// Calls of all kinds, some of which the compiler inlines into each other.

type worker struct {
	ms    int
	depth int
}

func inlined(do func(int), ms int) { do(ms) }

func twice(do func(int), ms int) { inlined(do, ms); inlined(do, ms) }

func (w *worker) recurse(left int, do func(int)) {
	if left > 0 {
		w.recurse(left-1, do)
		return
	}
	var large [5000]byte // more than a goroutine begins with
	large[w.depth] = 1
	twice(do, w.ms)
	runtime.KeepAlive(&large)
}

type runner interface{ run(do func(int)) }

func (w worker) run(do func(int)) {
	defer func() { inlined(do, w.ms) }()
	w.recurse(w.depth, do)
}

func generic[T runner](r T, do func(int)) { r.run(do) }

func disturb(stop <-chan bool, values chan int) {
	var kept [][]byte
	for {
		select {
		case <-stop:
			return
		case v := <-values:
			kept = append(kept, make([]byte, 1000+v))
			if len(kept) > 500 {
				kept = nil
				runtime.GC()
			}
		case values <- 1:
		}
	}
}

// The thread waits in vfork until the child is another program.
//
//go:noinline
func spawn() {
	child, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		panic(err)
	}
	child.Wait()
}

func number(i int) int {
	n, err := strconv.Atoi(os.Args[i])
	if err != nil {
		panic(err)
	}
	return n
}

func main() {
	rounds, ms := number(1), number(2)
	stop, values := make(chan bool), make(chan int, 10)
	for i := 0; i < 3; i++ {
		go disturb(stop, values)
	}
	var all sync.WaitGroup
	for i := 0; i < rounds; i++ {
		w := worker{ms, 3 * i}
		for _, do := range []func(int){nap, spin} {
			do := do
			all.Add(1)
			go func() {
				defer all.Done()
				runtime.LockOSThread() // and ends the thread with the goroutine
				generic(runner(w), do)
			}()
		}
	}
	for i := 0; i < rounds; i++ {
		spawn()
	}
	all.Wait()
	close(stop)
	file, err := os.OpenFile(os.Getenv("WALLPROF_ANNOUNCE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		panic(err)
	}
	for _, i := range reported.intervals {
		line, _ := json.Marshal(i)
		fmt.Fprintf(file, "%s\n", line)
	}
}
