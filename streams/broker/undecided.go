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
)

const (
	// roomPoll is the pause between two looks at whether connections that have not logged in are
	// too many, and roomPollTight the pause after some were.
	roomPoll      = 10 * time.Millisecond
	roomPollTight = 2 * time.Millisecond
	// roomLogInterval is the shortest pause between two log lines about connections closed to make
	// room.
	roomLogInterval = time.Minute
	// helloAge is how long a ClientHello is remembered at least: as long as a connection can take
	// to log in. It is less when more than maxHellos come.
	helloAge  = (tlsTimeoutSeconds + connectTimeoutSeconds) * time.Second
	maxHellos = 1 << 16
)

// undecided is a connection that has not logged in.
type undecided struct {
	id      uint64
	from    source
	since   time.Time
	greeted bool // its ClientHello has come
	proven  bool // its TLS handshake is over: its certificate is good
	// newer is how many of the connections that it is compared with are newer and have the same
	// source.
	newer int
}

// source is where connections come from: an address, and to which listener.
type source struct {
	block netip.Prefix
	mqtt  bool
}

// makeRoom closes connections that have not logged in while they leave too little of the bound on
// connections to newcomers. It returns when ctx ends.
func (s *Server) makeRoom(ctx context.Context, bound int) {
	timer := time.NewTimer(roomPoll)
	defer timer.Stop()
	var logged time.Time
	closed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		pause := roomPoll
		if now := s.current.Load(); now != nil {
			if n := now.makeRoom(bound); n > 0 {
				pause = roomPollTight
				s.undecidedClosed.Add(int64(n))
				closed += n
			}
		}
		timer.Reset(pause)
		if closed > 0 && time.Since(logged) >= roomLogInterval {
			s.log.Warn(
				"connections closed to make room: they had not logged in", "closed", closed,
				"max_connections", bound,
			)
			closed, logged = 0, time.Now()
		}
	}
}

// makeRoom returns how many connections it closed. Below half of the bound there is room, and it
// looks no further.
func (r *run) makeRoom(bound int) int {
	open := r.server.NumClients()
	if open <= bound/2 {
		return 0
	}
	account, err := r.server.LookupAccount(undecidedAccount)
	if err != nil || account.NumLocalConnections() == 0 {
		return 0
	}
	list, err := r.server.Connz(
		&server.ConnzOptions{Account: undecidedAccount, Limit: maxConnections},
	)
	if err != nil {
		return 0 // the server is on its way out
	}
	var conns []undecided
	for _, conn := range list.Conns {
		addr, err := netip.ParseAddr(conn.IP)
		if err != nil {
			continue // a connection within the process has no address
		}
		proven := conn.TLSVersion != ""
		conns = append(conns, undecided{
			id: conn.Cid, from: source{addressBlock(addr), conn.Type == "mqtt"}, since: conn.Start,
			proven:  proven,
			greeted: proven || r.gate.hellos.has(addr, conn.Port),
		})
	}
	closed := 0
	for _, victim := range superfluous(conns, bound-(open-len(conns))) {
		if r.server.DisconnectClientByID(victim.id) == nil { // fails when it has gone by itself
			closed++
		}
	}
	return closed
}

// superfluous returns the connections to close so that newcomers find a place among the slots, the
// connections that can be open beside those that have logged in. Silent connections may take half
// of the slots, less what others take, but always an eighth; those whose ClientHello has come may
// take three quarters: hubs that come back all at once wait for their turn. Connections of the
// source with the most go first, and of one source the oldest.
func superfluous(conns []undecided, slots int) []undecided {
	var silent, greeted []undecided
	for _, c := range conns {
		if c.greeted {
			greeted = append(greeted, c)
		} else {
			silent = append(silent, c)
		}
	}
	order(silent)
	order(greeted)
	slots = max(slots, 0)
	keepSilent := max(slots/2-len(greeted), slots/8)
	keepGreeted := slots * 3 / 4
	return append(
		silent[:max(0, len(silent)-keepSilent)],
		greeted[:max(0, len(greeted)-keepGreeted)]...)
}

// order puts first what is to be closed first.
func order(conns []undecided) {
	slices.SortFunc(conns, func(a, b undecided) int { return b.since.Compare(a.since) })
	count := map[source]int{}
	for i := range conns {
		conns[i].newer = count[conns[i].from]
		count[conns[i].from]++
	}
	slices.SortFunc(conns, func(a, b undecided) int {
		if a.proven != b.proven {
			if a.proven {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.newer, a.newer), a.since.Compare(b.since))
	})
}

// addressBlock returns the addresses that count as one: an IPv4 address, or an IPv6 /64.
func addressBlock(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	block, _ := addr.Prefix(bits) // the number of bits is in range
	return block
}

// hellos are the addresses and ports whose ClientHello came lately.
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
