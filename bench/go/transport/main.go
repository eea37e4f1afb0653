// Command transport sends requests as Go's own HTTP client does and prints the microseconds of CPU that each took:
// transport URL CA METHOD REQUESTS WORKERS.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
)

func main() {
	url, method := os.Args[1], os.Args[3]
	requests, _ := strconv.Atoi(os.Args[4])
	workers, _ := strconv.Atoi(os.Args[5])
	pem, err := os.ReadFile(os.Args[2])
	fail(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: pool},
		MaxIdleConnsPerHost: workers,
		DisableCompression:  true,
	}}
	body := bytes.Repeat([]byte("y"), 700)
	send := func(count int) {
		for i := 0; i < count; i++ {
			var payload io.Reader
			if method != "GET" {
				payload = bytes.NewReader(body)
			}
			request, err := http.NewRequest(method, url, payload)
			fail(err)
			request.Header.Set("Authorization", "Bearer some-token")
			request.Header.Set("Accept", "application/json")
			answer, err := client.Do(request)
			fail(err)
			_, err = io.ReadAll(answer.Body)
			fail(err)
			answer.Body.Close()
		}
	}
	all := func(count int) {
		var group sync.WaitGroup
		for i := 0; i < workers; i++ {
			group.Add(1)
			go func() { defer group.Done(); send(count / workers) }()
		}
		group.Wait()
	}
	all(workers * 20)
	before := cpu()
	all(requests)
	fmt.Printf("%.2f\n", (cpu()-before)/float64(requests/workers*workers)*1e6)
}

func cpu() float64 {
	var usage syscall.Rusage
	fail(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
