package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sort"
	"time"
)

const window = 15 * time.Second

// An encoding writes the pods of a workload, and a list of such parts.
type encoding struct {
	contentType string
	fragment    func(one *Workload, cpu, memory int64, at time.Time) []byte
	list        func(apiVersion string, parts [][]byte, size int) []byte
}

var encodings = [2]encoding{
	{"application/json", jsonFragment, jsonList},
	{"application/vnd.kubernetes.protobuf", protobufFragment, protobufList},
}

func jsonFragment(one *Workload, cpu, memory int64, at time.Time) []byte {
	labels, _ := json.Marshal(one.Labels)
	stamp := at.UTC().Format(time.RFC3339)
	var out []byte
	for _, pod := range one.Pods {
		out = fmt.Appendf(out, `,{"metadata":{"name":%q,"namespace":%q,"creationTimestamp":%q,"labels":%s},"timestamp":%q,"window":%q,`+
			`"containers":[{"name":%q,"usage":{"cpu":"%dn","memory":"%dKi"}}]}`,
			pod, one.Namespace, stamp, labels, stamp, window, one.Container, cpu, memory/1024)
	}
	return out
}

func jsonList(apiVersion string, parts [][]byte, size int) []byte {
	out := make([]byte, 0, size+128)
	out = append(out, `{"kind":"PodMetricsList","apiVersion":"`+apiVersion+`","metadata":{},"items":[`...)
	start := len(out)
	for _, part := range parts {
		out = append(out, part...)
	}
	if len(out) > start {
		out = append(out[:start], out[start+1:]...) // the first comma
	}
	return append(out, "]}\n"...)
}

// Protobuf as of k8s.io/metrics: field numbers of PodMetrics, ObjectMeta, Time, Duration, Quantity.

func field(out []byte, number int, value []byte) []byte {
	out = append(out, byte(number<<3|2))
	out = binary.AppendUvarint(out, uint64(len(value)))
	return append(out, value...)
}

func varint(out []byte, number int, value int64) []byte {
	return binary.AppendUvarint(append(out, byte(number<<3)), uint64(value))
}

func entry(key string, value []byte) []byte {
	return field(field(nil, 1, []byte(key)), 2, value)
}

func protobufFragment(one *Workload, cpu, memory int64, at time.Time) []byte {
	stamp := varint(nil, 1, at.Unix())
	var labels []byte
	keys := make([]string, 0, len(one.Labels))
	for key := range one.Labels {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		labels = field(labels, 11, entry(key, []byte(one.Labels[key])))
	}
	container := field(nil, 1, []byte(one.Container))
	container = field(container, 2, entry("cpu", field(nil, 1, fmt.Appendf(nil, "%dn", cpu))))
	container = field(container, 2, entry("memory", field(nil, 1, fmt.Appendf(nil, "%dKi", memory/1024))))
	var out []byte
	for _, pod := range one.Pods {
		meta := field(field(nil, 1, []byte(pod)), 3, []byte(one.Namespace))
		meta = append(field(meta, 8, stamp), labels...)
		item := field(field(nil, 1, meta), 2, stamp)
		item = field(field(item, 3, varint(nil, 1, int64(window))), 4, container)
		out = field(out, 2, item)
	}
	return out
}

func protobufList(apiVersion string, parts [][]byte, size int) []byte {
	raw := field(make([]byte, 0, size+16), 1, nil)
	for _, part := range parts {
		raw = append(raw, part...)
	}
	kind := field(field(nil, 1, []byte(apiVersion)), 2, []byte("PodMetricsList"))
	out := append(make([]byte, 0, len(raw)+96), "k8s\x00"...)
	out = field(field(out, 1, kind), 2, raw)
	return field(field(out, 3, nil), 4, nil)
}
