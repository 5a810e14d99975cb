package jsapi

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
)

// BatchPool reads batches for many goroutines. It keeps its getters, because a subscription for
// each batch would cost as much as a dozen messages. Safe for concurrent use.
type BatchPool struct {
	api  API
	size int
	// slots has one entry for each getter in use.
	slots chan struct{}

	mu   sync.Mutex
	idle []*BatchGetter
}

// NewBatchPool returns a pool that reads at most limit batches at once, of up to size messages
// each. The caller must Close it.
func (a API) NewBatchPool(limit, size int) *BatchPool {
	return &BatchPool{api: a, size: size, slots: make(chan struct{}, limit)}
}

// Conn returns the connection that the pool reads over.
func (p *BatchPool) Conn() *nats.Conn { return p.api.nc }

// Get requests a batch and waits for it, as BatchGetter does.
func (p *BatchPool) Get(ctx context.Context, r BatchRequest) (msgs []Message, err error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	g, err := p.getter()
	if err != nil {
		return nil, err
	}
	if msgs, err = g.Get(ctx, r); err != nil {
		g.Close() // the rest of its batch may still come
		return nil, err
	}
	p.mu.Lock()
	p.idle = append(p.idle, g)
	p.mu.Unlock()
	return msgs, nil
}

func (p *BatchPool) getter() (*BatchGetter, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		g := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return g, nil
	}
	p.mu.Unlock()
	return p.api.NewBatchGetter(p.size)
}

// Close ends the subscriptions of idle getters. Those in use end with their connection.
func (p *BatchPool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.idle {
		g.Close()
	}
	p.idle = nil
}
