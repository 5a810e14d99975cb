package streams

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// confirmTimeout is how long AwaitSubscribed waits for the broker before it logs a warning and
	// tries again, after confirmPause.
	confirmTimeout = 2 * time.Second
	confirmPause   = 100 * time.Millisecond
)

// AwaitSubscribed waits until the broker has confirmed the subscriptions that nc has made. While
// the broker does not answer, AwaitSubscribed logs a warning and tries again; the client repeats
// the subscriptions when its connection is back. The error is ctx's, if ctx ends first.
func AwaitSubscribed(ctx context.Context, nc *nats.Conn, logger *slog.Logger) error {
	for warned := false; ; {
		attempt, cancel := context.WithTimeout(ctx, confirmTimeout)
		err := nc.FlushWithContext(attempt)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			return nil
		case !warned:
			logger.Warn("subscriptions not confirmed; trying again", "error", err)
			warned = true
		}
		if !Sleep(ctx, confirmPause) {
			return ctx.Err()
		}
	}
}

// Unsubscribe ends a subscription. nats.go returns an error only when the connection is closed,
// which has ended the subscription too.
func Unsubscribe(sub *nats.Subscription) { _ = sub.Unsubscribe() }

// NoResponders reports whether msg is not an answer but the broker's report that nothing is
// subscribed to the subject of the request.
func NoResponders(msg *nats.Msg) bool { return msg.Header.Get("Status") == "503" }
