package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
)

// pageSize is how much is stored and read.
type pageSize struct {
	readers int
	// logs of events each are read cold; more than the service's cache of history holds.
	logs, events int
	rounds       int
	// newest is how many of a log's newest events are read, over and over, for that time.
	newest int
	during time.Duration
}

// pageEvents is how many events a page holds.
const pageEvents = 100

// measurePages compares pages a second.
func measurePages(b *bench) {
	n := size(b, pageSize{8, 64, 5000, 3, 2000, 3 * time.Second}, pageSize{2, 2, 400, 1, 200, 100 * time.Millisecond})
	s := startService(b, "--log-level", "warn")
	hubs := s.hubs(n.logs)
	const batch = 200
	s.each(hubs, func(h *hub) error { return h.emit(n.events/batch, batch) })
	for _, h := range hubs {
		h.disconnect()
	}
	s.Stop()
	copied := b.TempDir()
	if err := os.CopyFS(filepath.Join(copied, "nats"), os.DirFS(filepath.Join(s.Dir, "nats"))); err != nil {
		b.Fatal(err)
	}
	s.Begin()
	s.process.pid = s.PID()
	broker := newAuthority(b).broker(filepath.Join(copied, "nats"), defaultShards)

	cold := row{Measure: "pages, cold history", Unit: "pages/s", Aim: atLeast(0.6), Note: fmt.Sprintf(
		"every page of 100 of %d logs of %d events, once after a restart, %d readers", n.logs, n.events, n.readers)}
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
			b.Fatalf("%d pages, wanted %d or more", pages, want)
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

// measureNewestPages compares reads of the newest events of a log that somebody follows.
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
	bareRequest := []byte("GET /page HTTP/1.1\r\nHost: " + web.ready.HTTP + "\r\nAuthorization: Bearer " + s.Key + "\r\n\r\n")

	r := row{Measure: "pages, newest events", Unit: "pages/s", Aim: atLeast(0.4), Note: fmt.Sprintf(
		"the newest %d events of one log, over and over, %d readers; a page has %d bytes", n.newest, n.readers, len(page))}
	for round := range n.rounds {
		done := b.profile(s.process, "pages newest", n.during, round == 0)
		r.Values = append(r.Values, readPages(b, s.Service.HTTP, n.readers, n.during, requests))
		done()
		done = b.profile(web.process, "pages newest limit", n.during, round == 0)
		r.Limits = append(r.Limits, readPages(b, web.ready.HTTP, n.readers, n.during, [][]byte{bareRequest}))
		done()
	}
	return r
}

// readPages gives how many pages a second the readers get that send these requests in a circle.
func readPages(b *bench, address string, readers int, during time.Duration, requests [][]byte) float64 {
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

// readAll reads every page of the hubs' logs, each reader some of the logs, and gives how many pages it were.
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

// pageRequest is the request for a page, as it goes over the wire.
func (s *service) pageRequest(h *hub, after string) []byte {
	query := "?limit=" + strconv.Itoa(pageEvents)
	if after != "" {
		query += "&after=" + after
	}
	return []byte(s.get("/hubs/" + h.ID + "/events" + query))
}

// streamRequest is the request for a hub's event stream.
func (s *service) streamRequest(h *hub, lastEventID string) string {
	request := s.get("/hubs/" + h.ID + "/events/stream")
	if lastEventID != "" {
		request = strings.TrimSuffix(request, "\r\n") + "Last-Event-ID: " + lastEventID + "\r\n\r\n"
	}
	return request
}

func (s *service) get(path string) string {
	return "GET /v1" + path + " HTTP/1.1\r\nHost: " + s.Service.HTTP + "\r\nAuthorization: Bearer " + s.Key + "\r\n\r\n"
}

// pageClient reads pages over one connection.
type pageClient struct {
	conn   net.Conn
	reader *bufio.Reader
	body   []byte
}

func dialPages(address string) (*pageClient, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &pageClient{conn: conn, reader: bufio.NewReaderSize(conn, 64<<10)}, nil
}

var contentLength = []byte("Content-Length: ")

// read sends a request and reads the answer's body.
func (c *pageClient) read(request []byte) error {
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	length, first := -1, true
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
			return fmt.Errorf("answer %q to %q", line, request)
		}
		first = false
		if value, ok := bytes.CutPrefix(line, contentLength); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
		if len(line) == 2 {
			break
		}
	}
	if length < 0 {
		return errors.New("an answer without a length")
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err := io.ReadFull(c.reader, c.body)
	return err
}

// next gives the page's next_cursor, and more its has_more.
func (c *pageClient) next() string {
	_, rest, _ := bytes.Cut(c.tail(), []byte(`"next_cursor":"`))
	cursor, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(cursor)
}

func (c *pageClient) more() bool { return bytes.Contains(c.tail(), []byte(`"has_more":true`)) }

func (c *pageClient) tail() []byte { return c.body[max(0, len(c.body)-200):] }

// pagesCommand lets the bare broker's process read every page of the hubs' logs.
type pagesCommand struct {
	Hubs    []string
	Readers int
	Events  int
}

// pages gives pages a second.
func (b *bareBroker) pages(c pagesCommand) (float64, error) {
	var next atomic.Int64
	var pages atomic.Int64
	var group errgroup.Group
	began := time.Now()
	for range c.Readers {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(c.Hubs) {
					return nil
				}
				n, err := b.readLog(c.Hubs[i], c.Events)
				pages.Add(int64(n))
				if err != nil {
					return fmt.Errorf("pages of %s: %w", c.Hubs[i], err)
				}
			}
		})
	}
	err := group.Wait()
	return float64(pages.Load()) / time.Since(began).Seconds(), err
}

// readLog reads a stream in batches of a page by direct get.
func (b *bareBroker) readLog(hub string, events int) (pages int, err error) {
	nc := b.shard(hub)
	inbox := nc.NewInbox()
	answers := make(chan *nats.Msg, 2*pageEvents)
	sub, err := nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return 0, err
	}
	defer sub.Unsubscribe()
	subject := "$JS.API.DIRECT.GET." + streams.HubStream(domain.HubID(hub))
	seq, got := uint64(1), 0
	for got < events {
		if err := nc.PublishRequest(subject, inbox, fmt.Appendf(nil, `{"seq":%d,"batch":%d}`, seq, pageEvents)); err != nil {
			return pages, err
		}
		for {
			m := <-answers
			status := m.Header.Get("Status")
			if status == strconv.Itoa(http.StatusNoContent) {
				break
			}
			if status != "" {
				return pages, fmt.Errorf("status %s from %d on", status, seq)
			}
			last, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
			if err != nil {
				return pages, err
			}
			seq = last + 1
			got++
		}
		pages++
	}
	return pages, nil
}
