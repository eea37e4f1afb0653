package main

import (
	"hash/fnv"
	"math"
	"strings"
	"sync"
	"time"
)

// Workload is what a set of equal pods is called; all of them use the same at any moment.
type Workload struct {
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels"`
	Container string            `json:"container"`
	Pods      []string          `json:"pods"`

	phase     float64
	fragments [2]fragment // JSON, protobuf
}

// A fragment is a workload's part of a list, kept until usage moves.
type fragment struct {
	mutex sync.Mutex
	at    moment
	bytes []byte
}

// Order is a change of what everyone uses: millicores, bytes, a share, seconds, and 1 or 0.
type Order struct {
	CPU     *float64 `json:"cpu"`
	Memory  *float64 `json:"memory"`
	Jitter  *float64 `json:"jitter"`
	Refresh *float64 `json:"refresh"`
	// NeverRepeats makes each refresh show another usage than the ones before, so that every decision is a write.
	NeverRepeats *float64 `json:"never_repeats"`
}

// A moment names one state of all values: it advances with every refresh and every order.
type moment struct{ epoch, version int64 }

// Usage is the table of all workloads and the level they are at.
type Usage struct {
	sync.RWMutex
	all                          []*Workload
	byNamespace, byLabel         map[string][]*Workload
	cpu, memory, jitter, refresh float64
	neverRepeats                 float64
	version                      int64
	ordered                      time.Time
}

func newUsage() *Usage {
	return &Usage{cpu: 60, memory: 100 << 20, refresh: 15}
}

func (u *Usage) replace(all []*Workload) {
	u.Lock()
	defer u.Unlock()
	u.all, u.byNamespace, u.byLabel = all, map[string][]*Workload{}, map[string][]*Workload{}
	for _, one := range all {
		name := fnv.New32a()
		name.Write([]byte(one.Namespace + "/" + one.Labels["app"]))
		one.phase = float64(name.Sum32()) / math.MaxUint32
		u.byNamespace[one.Namespace] = append(u.byNamespace[one.Namespace], one)
		for key, value := range one.Labels {
			place := one.Namespace + "/" + key + "=" + value
			u.byLabel[place] = append(u.byLabel[place], one)
		}
	}
	u.version, u.ordered = u.version+1, time.Now()
}

func (u *Usage) set(order Order) {
	u.Lock()
	defer u.Unlock()
	for field, value := range map[*float64]*float64{&u.cpu: order.CPU, &u.memory: order.Memory, &u.jitter: order.Jitter,
		&u.refresh: order.Refresh, &u.neverRepeats: order.NeverRepeats} {
		if value != nil {
			*field = *value
		}
	}
	u.version, u.ordered = u.version+1, time.Now()
}

func (u *Usage) now() moment {
	return moment{int64(float64(time.Now().UnixNano()) / 1e9 / u.refresh), u.version}
}

// stamp returns when the values of a moment began, as a scraper would have noted it: an order is a new scrape.
func (u *Usage) stamp(at moment) time.Time {
	begun := time.Unix(0, int64(float64(at.epoch)*u.refresh*1e9))
	if begun.Before(u.ordered) {
		return u.ordered
	}
	return begun
}

// of returns nanocores and bytes of one pod: anywhere within the jitter, as likely near the value before as far from it.
func (u *Usage) of(one *Workload, at moment) (int64, int64) {
	place := one.phase + float64(at.epoch%100000)*(math.Sqrt(5)-1)/2 // steps of the golden ratio are never short
	if u.neverRepeats == 0 {
		place = math.Sin(one.phase*1000+float64(at.epoch%100000)*12.9898) * 43758.5453
	}
	factor := 1 + u.jitter*(2*(place-math.Floor(place))-1)
	return int64(u.cpu * factor * 1e6), int64(u.memory*factor) / 1024 * 1024
}

// find returns the workloads of a namespace ("" is all) that carry every label of an equality selector.
func (u *Usage) find(namespace, selector string) []*Workload {
	if namespace == "" && selector == "" {
		return u.all
	}
	if selector == "" {
		return u.byNamespace[namespace]
	}
	terms := strings.Split(selector, ",")
	candidates := u.all
	if namespace != "" {
		candidates = u.byLabel[namespace+"/"+terms[0]]
	}
	var found []*Workload
	for _, one := range candidates {
		if carries(one.Labels, terms) {
			found = append(found, one)
		}
	}
	return found
}

func carries(labels map[string]string, terms []string) bool {
	for _, term := range terms {
		key, value, _ := strings.Cut(term, "=")
		if labels[key] != value {
			return false
		}
	}
	return true
}
