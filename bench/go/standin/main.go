// standin: a metrics.k8s.io, v1 and v1beta1, whose values the benchmark sets.
//
// It answers JSON and protobuf over TLS and HTTP/2, as metrics-server does, so that neither controller under test pays
// for the stand-in. A plain-HTTP port on loopback takes the orders:
//
//	PUT  /workloads  [{"namespace","labels":{},"container","pods":["name"...]}...]   who exists
//	POST /set        {"cpu":60,"memory":104857600,"jitter":0.05,"refresh":1.0}       what they use; all fields optional
//	GET  /stats      {"requests","bytes"}
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"
)

func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "standin"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func listen() net.Listener {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return socket
}

func control(usage *Usage, served *counters) http.Handler {
	mux := http.NewServeMux()
	take := func(pattern string, order func(*json.Decoder) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := order(json.NewDecoder(r.Body)); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		})
	}
	take("PUT /workloads", func(body *json.Decoder) error {
		var all []*Workload
		if err := body.Decode(&all); err != nil {
			return err
		}
		usage.replace(all)
		return nil
	})
	take("POST /set", func(body *json.Decoder) error {
		var order Order
		if err := body.Decode(&order); err != nil {
			return err
		}
		usage.set(order)
		return nil
	})
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"requests":%d,"bytes":%d}`, served.requests.Load(), served.bytes.Load())
	})
	return mux
}

func main() {
	usage, served := newUsage(), &counters{}
	api, orders := listen(), listen()
	fmt.Printf(`{"port":%d,"control":"http://%s"}`+"\n", api.Addr().(*net.TCPAddr).Port, orders.Addr())
	go func() { log.Fatal(http.Serve(orders, control(usage, served))) }()
	server := &http.Server{Handler: &metricsAPI{usage, served}, TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"h2", "http/1.1"}}}
	log.Fatal(server.ServeTLS(api, "", ""))
}
