package alarms

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

// pingInterval is the time after which a connection that is silent is tried.
const pingInterval = time.Second

// announced collects the hubs that projectors announce.
type announced struct {
	// ready has an element when there may be hubs.
	ready chan struct{}

	mu sync.Mutex
	// hubs are the hubs, and whether a device of each reports an alarm.
	hubs map[domain.HubID]bool
}

func newAnnounced() *announced {
	return &announced{ready: make(chan struct{}, 1), hubs: map[domain.HubID]bool{}}
}

// listen collects announcements until ctx ends or the connection is lost.
func (a *announced) listen(ctx context.Context, conn *pgx.Conn) error {
	for {
		payload, ok, err := schema.AwaitNotification(ctx, conn, pingInterval)
		if err != nil {
			return err
		}
		if ok {
			a.add(schema.ReadAnnouncement(payload))
		} else if err := ping(ctx, conn); err != nil {
			return err
		}
	}
}

func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, schema.AnswerTimeout)
	defer cancel()
	return conn.Ping(ctx)
}

// add adds hubs.
func (a *announced) add(hubs []domain.HubID, urgent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range hubs {
		a.hubs[id] = a.hubs[id] || urgent
	}
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

// take returns the hubs that were announced since the last call.
func (a *announced) take() map[domain.HubID]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	hubs := a.hubs
	a.hubs = map[domain.HubID]bool{}
	return hubs
}
