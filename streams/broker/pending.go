package broker

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hubcloud/streams/shares"
)

const (
	// evictPoll is the pause between two checks for too many pending connections, and evictPollFast
	// the pause after some were closed.
	evictPoll     = 10 * time.Millisecond
	evictPollFast = 2 * time.Millisecond
	// evictLogInterval is the shortest time between two log lines about closed connections.
	evictLogInterval = time.Minute
	// helloAge is how long a ClientHello is remembered at least: the longest time that a login can
	// take. It is less if more than maxHellos arrive.
	helloAge  = (tlsTimeoutSeconds + connectTimeoutSeconds) * time.Second
	maxHellos = 1 << 16
)

// pending is a connection that has not logged in.
type pending struct {
	id      uint64
	from    source
	since   time.Time
	hello   bool // it has sent a ClientHello
	trusted bool // its TLS handshake is complete, so its certificate is valid
	// newer is the number of newer connections from the same source.
	newer int
}

// source is the origin of a connection: an address block and the listener.
type source struct {
	block netip.Prefix
	mqtt  bool
}

// evictPending closes pending connections while they use too much of the limit of connections. It
// returns when ctx ends.
func (s *Server) evictPending(ctx context.Context, limit int) {
	timer := time.NewTimer(evictPoll)
	defer timer.Stop()
	var logged time.Time
	closed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		pause := evictPoll
		if now := s.current.Load(); now != nil {
			n := now.evictPending(now.hubs, limit)
			n += now.evictPending(now.durable, durableConnections)
			if n > 0 {
				pause = evictPollFast
				s.pendingClosed.Add(int64(n))
				closed += n
			}
		}
		timer.Reset(pause)
		if closed > 0 && time.Since(logged) >= evictLogInterval {
			s.logger.Warn(
				"connections closed that had not logged in", "closed", closed,
				"max_connections", limit,
			)
			closed, logged = 0, time.Now()
		}
	}
}

// evictPending returns the number of connections of a server that it closed. It closes none while
// less than half of the limit is used.
func (r *run) evictPending(s *server.Server, limit int) int {
	open := s.NumClients()
	if open <= limit/2 {
		return 0
	}
	account, err := s.LookupAccount(pendingAccount)
	if err != nil || account.NumLocalConnections() == 0 {
		return 0
	}
	list, err := s.Connz(
		&server.ConnzOptions{Account: pendingAccount, Limit: maxConnections},
	)
	if err != nil {
		return 0 // the server is shutting down
	}
	var conns []pending
	for _, conn := range list.Conns {
		addr, err := netip.ParseAddr(conn.IP)
		if err != nil {
			continue // connections within the process have no address
		}
		trusted := conn.TLSVersion != ""
		conns = append(conns, pending{
			id: conn.Cid, from: source{shares.AddressBlock(addr), conn.Type == "mqtt"}, since: conn.Start,
			trusted: trusted,
			hello:   trusted || r.handshakes.hellos.has(addr, conn.Port),
		})
	}
	closed := 0
	for _, victim := range excess(conns, limit-(open-len(conns))) {
		if s.DisconnectClientByID(victim.id) == nil { // fails if it has closed already
			closed++
		}
	}
	return closed
}

// excess returns the pending connections to close. slots is the number of connections that may be
// open beside those that have logged in. Connections with a ClientHello may use three quarters of
// the slots, which leaves space for many hubs that reconnect at once. Silent connections may use
// half of the slots less those with a ClientHello, but at least an eighth. Connections of the
// source with the most are closed first, and the oldest of a source first.
func excess(conns []pending, slots int) []pending {
	var silent, active []pending
	for _, c := range conns {
		if c.hello {
			active = append(active, c)
		} else {
			silent = append(silent, c)
		}
	}
	order(silent)
	order(active)
	slots = max(slots, 0)
	keepSilent := max(slots/2-len(active), slots/8)
	keepActive := slots * 3 / 4
	return append(
		silent[:max(0, len(silent)-keepSilent)],
		active[:max(0, len(active)-keepActive)]...)
}

// order sorts connections in the order in which they are to be closed.
func order(conns []pending) {
	slices.SortFunc(conns, func(a, b pending) int { return b.since.Compare(a.since) })
	count := map[source]int{}
	for i := range conns {
		conns[i].newer = count[conns[i].from]
		count[conns[i].from]++
	}
	slices.SortFunc(conns, func(a, b pending) int {
		if a.trusted != b.trusted {
			if a.trusted {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.newer, a.newer), a.since.Compare(b.since))
	})
}

// hellos has the addresses and ports that have recently sent a ClientHello.
type hellos struct {
	mu              sync.Mutex
	current, former map[netip.AddrPort]struct{}
	begun           time.Time
}

func (h *hellos) add(conn net.Conn) {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return
	}
	from := tcp.AddrPort()
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil || now.Sub(h.begun) > helloAge || len(h.current) >= maxHellos {
		h.current, h.former, h.begun = map[netip.AddrPort]struct{}{}, h.current, now
	}
	h.current[netip.AddrPortFrom(from.Addr().Unmap().WithZone(""), from.Port())] = struct{}{}
}

func (h *hellos) has(addr netip.Addr, port int) bool {
	from := netip.AddrPortFrom(addr.Unmap().WithZone(""), uint16(port))
	h.mu.Lock()
	defer h.mu.Unlock()
	_, now := h.current[from]
	_, before := h.former[from]
	return now || before
}
