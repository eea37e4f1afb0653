package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// relay accepts connections at an address and passes each on to a target.
func relay(address, target string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		near, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			far, err := net.DialTimeout("tcp", target, 10*time.Second)
			if err != nil {
				log.Print(err)
				near.Close()
				return
			}
			join(near, far)
		}()
	}
}

// connect serves one request of an HTTP CONNECT proxy.
func connect(w http.ResponseWriter, r *http.Request) {
	far, err := net.DialTimeout("tcp", r.Host, 10*time.Second)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	near, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		far.Close()
		return
	}
	io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n")
	join(near, far)
}

// join copies both ways until one side ends.
func join(near, far net.Conn) {
	var once sync.Once
	end := func() { once.Do(func() { near.Close(); far.Close() }) }
	go func() { io.Copy(near, far); end() }()
	io.Copy(far, near)
	end()
}
