// load is the program of all containers in the tests on real nodes.
//
//	load             wait: the sandbox of a pod
//	load serve       use CPU_M millicores and MEM_MB, and change that on request: /cpu?m=300  /mem?mb=64
//	                 /healthz answers with success, with NOT_READY=1 only after /ready
//	load job         use CPU_M millicores for SECONDS, then end
//	load ask PATH    send a request to the `load serve` of the same pod
//
// and of the guest itself, which has no kube-proxy:
//
//	load relay ADDRESS TARGET    pass connections on: pods reach the API server by the address of its Service
//	load connect ADDRESS         serve HTTP CONNECT: the API server reaches pods
//	load services ADDRESS PROXY  pass connections on to the Service whose address they were made to, by a proxy outside
//	load names ADDRESS TARGET    pass questions for names on: pods find Services by name
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	millis atomic.Int64
	mu     sync.Mutex
	held   [][]byte
)

const quantum = 20 * time.Millisecond

// burn uses a share of one core: busy for part of every quantum. Several run beside each other above 1000m.
func burn(n int64) {
	for {
		want := min(max(millis.Load()-1000*n, 0), 1000)
		start := time.Now()
		busy := quantum * time.Duration(want) / 1000
		for time.Since(start) < busy {
		}
		if rest := quantum - time.Since(start); rest > 0 {
			time.Sleep(rest)
		}
	}
}

func hold(mb int) {
	mu.Lock()
	defer mu.Unlock()
	if mb < len(held) {
		held = held[:mb]
	}
	for len(held) < mb {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		held = append(held, b)
		time.Sleep(2 * time.Millisecond)
	}
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	if len(os.Args) < 2 {
		<-stop
		return
	}
	switch os.Args[1] {
	case "relay":
		log.Fatal(relay(os.Args[2], os.Args[3]))
	case "connect":
		log.Fatal(http.ListenAndServe(os.Args[2], http.HandlerFunc(connect)))
	case "services":
		log.Fatal(services(os.Args[2], os.Args[3]))
	case "names":
		log.Fatal(names(os.Args[2], os.Args[3]))
	}
	if os.Args[1] == "ask" {
		answer, err := http.Get("http://127.0.0.1:8080" + os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		io.Copy(os.Stdout, answer.Body)
		return
	}
	if os.Args[1] == "job" {
		millis.Store(int64(number(os.Getenv("CPU_M"))))
		go burn(0)
		select {
		case <-stop:
		case <-time.After(time.Duration(number(os.Getenv("SECONDS"))) * time.Second):
		}
		return
	}
	millis.Store(int64(number(os.Getenv("CPU_M"))))
	for n := int64(0); n < 2; n++ {
		go burn(n)
	}
	go hold(number(os.Getenv("MEM_MB")))
	http.HandleFunc("/cpu", func(w http.ResponseWriter, r *http.Request) {
		millis.Store(int64(number(r.FormValue("m"))))
		fmt.Fprintln(w, millis.Load())
	})
	http.HandleFunc("/mem", func(w http.ResponseWriter, r *http.Request) {
		go hold(number(r.FormValue("mb")))
		fmt.Fprintln(w, "ok")
	})
	var ready atomic.Bool
	ready.Store(os.Getenv("NOT_READY") == "")
	http.HandleFunc("/ready", func(w http.ResponseWriter, r *http.Request) { ready.Store(true) })
	http.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		if !ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
	go http.ListenAndServe(":8080", nil)
	<-stop
}
