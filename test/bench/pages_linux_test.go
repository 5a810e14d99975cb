package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// pageSize is the number of stored and read events.
type pageSize struct {
	readers int
	// logs of events each are read cold. They are larger than the service's cache of history.
	logs, events int
	rounds       int
	// newest is how many of a log's newest events are read repeatedly, for that time.
	newest int
	during time.Duration
}

// pageEvents is the number of events in a page.
const pageEvents = 100

// measurePages measures pages per second.
func measurePages(b *bench) {
	n := size(
		b, pageSize{8, 64, 5000, 3, 2000, 3 * time.Second},
		pageSize{2, 2, 400, 1, 200, 100 * time.Millisecond},
	)
	s := startService(b, "--log-level", "warn")
	hubs := s.hubs(n.logs)
	const batch = 200
	s.each(hubs, func(h *hub) error { return h.emit(n.events/batch, batch) })
	for _, h := range hubs {
		h.disconnect()
	}
	s.Stop()
	copied := b.TempDir()
	if err := os.CopyFS(
		filepath.Join(copied, "nats"), os.DirFS(filepath.Join(s.Dir, "nats")),
	); err != nil {
		b.Fatal(err)
	}
	s.Begin()
	s.process.pid = s.PID()
	broker := newAuthority(b).broker(filepath.Join(copied, "nats"), defaultShards)

	cold := row{
		Measure: "pages, cold history",
		Unit:    "pages/s",
		Aim:     atLeast(0.6),
		Note: fmt.Sprintf(
			"every page of 100 of %d logs of %d events, once after a restart, %d readers", n.logs,
			n.events, n.readers,
		),
	}
	for round := range n.rounds {
		if round > 0 {
			s.restart()
		}
		done := b.profile(s.process, "pages cold", 3*time.Second, round == 0)
		began := time.Now()
		pages, err := s.readAll(hubs, n.readers)
		took := time.Since(began)
		done()
		if err != nil {
			b.Fatal(err)
		}
		if want := n.logs * n.events / pageEvents; pages < want {
			b.Fatalf("got %d pages, want at least %d", pages, want)
		}
		cold.Values = append(cold.Values, float64(pages)/took.Seconds())

		done = b.profile(broker.process, "pages cold limit", 3*time.Second, round == 0)
		c := pagesCommand{Readers: n.readers, Events: n.events}
		for _, h := range hubs {
			c.Hubs = append(c.Hubs, h.ID)
		}
		var limit float64
		broker.do("/pages", c, &limit)
		done()
		cold.Limits = append(cold.Limits, limit)
	}
	broker.stop()
	b.report.add(cold, s.measureNewestPages(b, n))
}

// measureNewestPages measures reads of the newest events of a log with a reader.
func (s *service) measureNewestPages(b *bench, n pageSize) row {
	h := s.hubs(1)[0]
	defer h.disconnect()
	follower := newReaders(b)
	if _, err := follower.open(s.Service.HTTP, s.streamRequest(h, ""), false); err != nil {
		b.Fatal(err)
	}
	follower.awaitGreeted(1)
	s.each([]*hub{h}, func(h *hub) error { return h.emit(n.newest/pageEvents, pageEvents) })

	// The requests of the walk through the newest events, and one of its pages.
	var requests [][]byte
	var page []byte
	client, err := dialPages(s.Service.HTTP)
	if err != nil {
		b.Fatal(err)
	}
	defer client.conn.Close()
	for after := ""; ; after = client.next() {
		request := s.pageRequest(h, after)
		if err := client.read(request); err != nil {
			b.Fatal(err)
		}
		if !client.more() {
			break
		}
		requests = append(requests, request)
		page = bytes.Clone(client.body)
	}
	web := startBare(b, roleWeb, nothing{})
	web.do("/page", page, nil)
	bareRequest := []byte(
		"GET /page HTTP/1.1\r\nHost: " + web.ready.HTTP + "\r\nAuthorization: Bearer " + s.Tenant.Key + "\r\n\r\n",
	)

	r := row{Measure: "pages, newest events", Unit: "pages/s", Aim: atLeast(0.75), Note: fmt.Sprintf(
		"the newest %d events of one log, over and over, %d readers; a page has %d bytes", n.newest,
		n.readers, len(page),
	)}
	for round := range n.rounds {
		done := b.profile(s.process, "pages newest", n.during, round == 0)
		r.Values = append(r.Values, readPages(b, s.Service.HTTP, n.readers, n.during, requests))
		done()
		done = b.profile(web.process, "pages newest limit", n.during, round == 0)
		r.Limits = append(
			r.Limits, readPages(b, web.ready.HTTP, n.readers, n.during, [][]byte{bareRequest}),
		)
		done()
	}
	return r
}

// readPages returns the pages per second of readers that repeat the requests.
func readPages(
	b *bench, address string, readers int, during time.Duration, requests [][]byte,
) float64 {
	var pages atomic.Int64
	deadline := time.Now().Add(during)
	var group errgroup.Group
	for i := range readers {
		group.Go(func() error {
			client, err := dialPages(address)
			if err != nil {
				return err
			}
			defer client.conn.Close()
			for at := i; time.Now().Before(deadline); at++ {
				if err := client.read(requests[at%len(requests)]); err != nil {
					return err
				}
				pages.Add(1)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return float64(pages.Load()) / during.Seconds()
}

// readAll reads every page of the hubs' logs, divided among the readers, and returns the number of
// pages.
func (s *service) readAll(hubs []*hub, readers int) (int, error) {
	var pages atomic.Int64
	var next atomic.Int64
	var group errgroup.Group
	for range readers {
		group.Go(func() error {
			client, err := dialPages(s.Service.HTTP)
			if err != nil {
				return err
			}
			defer client.conn.Close()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(hubs) {
					return nil
				}
				for after := ""; ; after = client.next() {
					if err := client.read(s.pageRequest(hubs[i], after)); err != nil {
						return err
					}
					pages.Add(1)
					if !client.more() {
						break
					}
				}
			}
		})
	}
	err := group.Wait()
	return int(pages.Load()), err
}
