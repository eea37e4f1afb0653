package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

const patience = 10 * time.Second

// relay accepts connections at an address and passes each on to a target.
func relay(address, target string) error {
	return accept(address, func(net.Conn) (net.Conn, error) { return net.DialTimeout("tcp", target, patience) })
}

// services accepts connections to Services, whose addresses are all local to the guest, and asks a proxy outside for the pod.
func services(address, proxy string) error {
	return accept(address, func(near net.Conn) (net.Conn, error) { return dialBy(proxy, near.LocalAddr().String()) })
}

// accept joins each connection made to an address with the one that dial opens for it.
func accept(address string, dial func(near net.Conn) (net.Conn, error)) error {
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
			far, err := dial(near)
			if err != nil {
				log.Print(err)
				near.Close()
				return
			}
			join(near, far)
		}()
	}
}

// dialBy opens a connection to a target by a proxy for HTTP CONNECT.
func dialBy(proxy, target string) (net.Conn, error) {
	far, err := net.DialTimeout("tcp", proxy, patience)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(far, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	// The pod says nothing before it is asked, so nothing of it is left in the buffer.
	answer, err := http.ReadResponse(bufio.NewReader(far), &http.Request{Method: http.MethodConnect})
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", target, answer.Status)
	}
	if err != nil {
		far.Close()
		return nil, err
	}
	return far, nil
}

// names answers each packet at an address with what a target answers to it.
func names(address, target string) error {
	near, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	for {
		question := make([]byte, 1500)
		size, from, err := near.ReadFrom(question)
		if err != nil {
			return err
		}
		go func() {
			answer, err := ask(target, question[:size])
			if err != nil {
				log.Print(err)
				return
			}
			near.WriteTo(answer, from)
		}()
	}
}

// ask sends a packet to a target and returns the packet that it answers.
func ask(target string, question []byte) ([]byte, error) {
	far, err := net.Dial("udp", target)
	if err != nil {
		return nil, err
	}
	defer far.Close()
	far.SetDeadline(time.Now().Add(patience))
	if _, err := far.Write(question); err != nil {
		return nil, err
	}
	answer := make([]byte, 1500)
	size, err := far.Read(answer)
	return answer[:size], err
}

// connect serves one request of an HTTP CONNECT proxy.
func connect(w http.ResponseWriter, r *http.Request) {
	far, err := net.DialTimeout("tcp", r.Host, patience)
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
