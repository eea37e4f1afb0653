package main

import (
	"time"
)

type use struct {
	amount float64
	until  time.Time
}

const baseCPU, baseMemory = 1.0, 8.0 * 1024 * 1024 // millicores, bytes

// burn counts what every container uses, five times a second.
func (n *node) burn() {
	last := time.Now()
	for {
		time.Sleep(200 * time.Millisecond)
		now := time.Now()
		passed := now.Sub(last).Seconds()
		last = now
		n.mu.Lock()
		for _, p := range n.pods {
			if p.phase != "running" {
				continue
			}
			for _, c := range p.containers {
				cpu := baseCPU + sum(&c.cpuUses, now)
				if c.cpuLimit > 0 {
					cpu = min(cpu, c.cpuLimit)
				}
				c.cpuSeconds += cpu / 1000 * passed
				c.memory = baseMemory + sum(&c.memUses, now)
				if c.memLimit > 0 {
					c.memory = min(c.memory, c.memLimit)
				}
			}
		}
		n.mu.Unlock()
	}
}

func sum(uses *[]use, now time.Time) (total float64) {
	kept := (*uses)[:0]
	for _, u := range *uses {
		if u.until.After(now) {
			kept = append(kept, u)
			total += u.amount
		}
	}
	*uses = kept
	return total
}

func (n *node) consume(ip string, port int, path string, millicores, megabytes, seconds float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.byIP[ip]
	if p == nil {
		return
	}
	for _, c := range p.containers {
		if c.port != port {
			continue
		}
		until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
		switch path {
		case "/ConsumeCPU":
			c.cpuUses = append(c.cpuUses, use{millicores, until})
		case "/ConsumeMem":
			c.memUses = append(c.memUses, use{megabytes * 1024 * 1024, until})
		}
	}
}
