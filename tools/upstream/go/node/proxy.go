package main

import (
	"bufio"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

type dialer func(ctx context.Context, address string) (net.Conn, error)

func isLocal(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func dialDirectly(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	d.Timeout = 10 * time.Second
	return d.DialContext(ctx, "tcp", address)
}

type buffered struct {
	net.Conn
	r *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// connectProxy serves HTTP CONNECT.
func connectProxy(dial dialer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 15*time.Second)
		far, err := dial(ctx, r.Host)
		cancel()
		if err != nil {
			log.Printf("connect %s: %v", r.Host, err)
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		near, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			far.Close()
			return
		}
		io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n")
		join(&buffered{near, buf.Reader}, far)
	})
}

func join(a, b io.ReadWriteCloser) {
	var once sync.Once
	done := make(chan struct{})
	end := func() { once.Do(func() { a.Close(); b.Close(); close(done) }) }
	go func() { io.Copy(a, b); end() }()
	io.Copy(b, a)
	end()
	<-done
}

func serveUnix(socket string, h http.Handler) {
	os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal((&http.Server{Handler: h}).Serve(l))
}
