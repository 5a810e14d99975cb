package hublog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
)

const (
	// maxLanes is how many reads of history a shard's connection does at once.
	maxLanes = 16
	// maxGet is the most messages of one direct get, maxGetBytes about the most bytes, loadBytes of
	// one that is for readers: what is on its way to them is bounded by that and by how many loads
	// there are at once.
	maxGet      = 512
	maxGetBytes = 1 << 20
	loadBytes   = 256 << 10
	// getTimeout bounds one direct get.
	getTimeout = 3 * time.Second
)

// lane is a subscription that the answers of one direct get after the other come to: a subscription
// for each would cost as much as a dozen messages. Its channel has room for a whole answer, so that
// none is lost.
type lane struct {
	inbox   string
	answers chan *nats.Msg
	sub     *nats.Subscription
}

// lanes are those of a connection, at most maxLanes, made as needed.
type lanes struct {
	nc *nats.Conn
	// places has one entry for each lane in use.
	places chan struct{}

	mu   sync.Mutex
	free []*lane
}

func (l *lanes) init(nc *nats.Conn) {
	l.nc = nc
	l.places = make(chan struct{}, maxLanes)
}

func (l *lanes) take(ctx context.Context) (*lane, error) {
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	if n := len(l.free); n > 0 {
		taken := l.free[n-1]
		l.free = l.free[:n-1]
		l.mu.Unlock()
		return taken, nil
	}
	l.mu.Unlock()
	made := &lane{inbox: l.nc.NewInbox(), answers: make(chan *nats.Msg, maxGet+1)}
	var err error
	if made.sub, err = l.nc.ChanSubscribe(made.inbox, made.answers); err != nil {
		<-l.places
		return nil, err
	}
	return made, nil
}

// give takes a lane back. One whose answer did not come to its end might still get the rest of it:
// it is not used again.
func (l *lanes) give(used *lane, ended bool) {
	if ended {
		l.mu.Lock()
		l.free = append(l.free, used)
		l.mu.Unlock()
	} else {
		_ = used.sub.Unsubscribe()
	}
	<-l.places
}

// close takes the subscriptions of the free lanes back. Those in use end with their connection.
func (l *lanes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, free := range l.free {
		_ = free.sub.Unsubscribe()
	}
	l.free = nil
}

// rangeRequest asks for up to n messages, at most maxGet, and about so many bytes, from the
// sequence from on.
func rangeRequest(from uint64, n, bytes int) []byte {
	request := make([]byte, 0, 80)
	request = append(request, `{"seq":`...)
	request = strconv.AppendUint(request, from, 10)
	request = append(request, `,"batch":`...)
	request = strconv.AppendInt(request, int64(n), 10)
	request = append(request, `,"max_bytes":`...)
	request = strconv.AppendInt(request, int64(bytes), 10)
	return append(request, '}')
}

// getRange reads up to n messages from the sequence from on, as one direct get answers them: fewer
// when it stops for their size, or when the stream has no more. What has expired is left out
// without a word; what is read is in order.
func (s *shard) getRange(
	ctx context.Context, hub domain.HubID, from uint64, n int,
) (messages []stored, err error) {
	n = min(n, maxGet)
	return s.get(ctx, hub, rangeRequest(from, n, loadBytes), n)
}

// get sends one direct get to the hub's stream and collects its answer, of which n messages are
// expected at most.
func (s *shard) get(
	ctx context.Context, hub domain.HubID, request []byte, n int,
) (messages []stored, err error) {
	s.logs.metrics.directGets.Inc()
	return s.lanes.get(ctx, directGet(hub), request, n)
}

// get sends one direct get to a subject and collects its answer, of which n messages are expected
// at most.
func (l *lanes) get(
	ctx context.Context, subject string, request []byte, n int,
) (messages []stored, err error) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	used, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	ended := false
	defer func() { l.give(used, ended) }()
	if err := l.nc.PublishRequest(subject, used.inbox, request); err != nil {
		return nil, err
	}
	messages = make([]stored, 0, n)
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case msg := <-used.answers:
			if status := field(msg, "Status"); status != "" {
				// The end of the answer; nothing found; no such stream.
				ended = true
				if status == "204" || status == "404" || status == "503" {
					return messages, nil
				}
				return nil, fmt.Errorf("direct get: %s %s", status, field(msg, "Description"))
			}
			m, err := parseStored(msg)
			if err != nil {
				return nil, fmt.Errorf("direct get: %w", err)
			}
			if len(messages) > 0 && m.seq <= messages[len(messages)-1].seq {
				return nil, errors.New("direct get: answers out of order")
			}
			messages = append(messages, m)
		}
	}
}
