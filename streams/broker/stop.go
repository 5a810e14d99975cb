package broker

import (
	"context"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// pendingTimeout is how long RejectHubs waits for pending connections to be decided. A client
	// that connects and sends nothing stays pending.
	pendingTimeout = time.Second
	pendingPoll    = 5 * time.Millisecond
	// pendingAccount is the server's account for connections that have not logged in.
	pendingAccount = server.DEFAULT_GLOBAL_ACCOUNT
)

// RejectHubs rejects new hubs and waits until all pending connections are decided, ctx ends or a
// second has passed. It must be called before the auth callout stops being answered: an unanswered
// callout delays Close until the callout times out.
func (s *Server) RejectHubs(ctx context.Context) {
	s.stopLoops()
	if now := s.current.Load(); now != nil {
		now.rejectHubs(ctx)
	}
}

func (r *run) rejectHubs(ctx context.Context) {
	r.handshakes.close()
	// nats-server 2.15 removes its system account at the start of a shutdown. A callout after that
	// ends the process, so pending connections must be decided first.
	account, err := r.hubs.LookupAccount(pendingAccount)
	if err != nil {
		return // the server did not start completely
	}
	ctx, cancel := context.WithTimeout(ctx, pendingTimeout)
	defer cancel()
	ticker := time.NewTicker(pendingPoll)
	defer ticker.Stop()
	for account.NumLocalConnections() > 0 {
		select {
		case <-ctx.Done():
			r.closePending()
			return
		case <-ticker.C:
		}
	}
}

// closePending closes all pending connections.
func (r *run) closePending() {
	pending, err := r.hubs.Connz(
		&server.ConnzOptions{Account: pendingAccount, Limit: maxConnections},
	)
	if err != nil {
		return // the server is shutting down
	}
	for _, conn := range pending.Conns {
		_ = r.hubs.DisconnectClientByID(conn.Cid) // fails if it has closed already
	}
}

// end rejects new hubs, closes all connections and returns once the servers have stopped.
func (r *run) end(ctx context.Context) {
	r.rejectHubs(ctx)
	for _, each := range r.servers() {
		each.Shutdown()
		each.WaitForShutdown()
	}
}

// stopLoops ends the loops that recover the server and evict connections.
func (s *Server) stopLoops() {
	if s.stop != nil {
		s.stop()
	}
	s.loops.Wait()
}

// Close rejects new hubs as RejectHubs does, closes all connections and stops the servers. If ctx
// ends first, Close returns its error and the servers continue to stop. Close may be called more
// than once.
func (s *Server) Close(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.stopLoops()
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		if last != nil {
			last.end(ctx)
		}
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
