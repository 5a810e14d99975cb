package tap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// Credentials are the login of a tap, as `hubcloud tap credentials` writes them. The file is also a
// context of the nats command line, which ignores the fields that it does not know.
type Credentials struct {
	Description string `json:"description"`
	// URL has the broker's addresses, separated by commas.
	URL      string `json:"url"`
	User     string `json:"user"`
	Password string `json:"password"`
	// InboxPrefix is the prefix of the only subjects on which the user may receive replies.
	InboxPrefix string `json:"inbox_prefix"`
	// Shards is the number of the installation's shards. It determines the shard of each hub.
	Shards int `json:"shards"`
	// Authority is the certificate (PEM) of the authority that signed the broker's certificate.
	// Empty for a broker without TLS.
	Authority string `json:"authority,omitempty"`
}

// ReadCredentials reads the file of `hubcloud tap credentials`. It accepts the credentials file of
// the service too, and uses the tap's user in it.
func ReadCredentials(path string) (Credentials, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("read the tap's credentials: %w", err)
	}
	var file struct {
		Credentials
		Users map[streams.Account]streams.User `json:"users"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		// The decoder's error is left out: it can quote the text, which has a password.
		return Credentials{}, fmt.Errorf(
			"read the tap's credentials: %s is not a credentials file", path,
		)
	}
	c := file.Credentials
	if file.Users != nil {
		user := file.Users[streams.AccountTap]
		c.User, c.Password, c.InboxPrefix = user.User, user.Password, streams.TapInbox(user.User)
	}
	if c.User == "" || c.InboxPrefix == "" || c.Shards < 1 || c.Shards > streams.MaxShards {
		return Credentials{}, fmt.Errorf(
			"%s is not a file of `hubcloud tap credentials`: it must have a user, an inbox prefix "+
				"and 1 to %d shards",
			path, streams.MaxShards,
		)
	}
	return c, nil
}

// ForUser returns the credentials of a user with access to a tap's account.
func ForUser(url string, shards int, user streams.User) Credentials {
	return Credentials{
		Description: "hubcloud tap: reads the events of all hubs, and nothing else",
		URL:         url, User: user.User, Password: user.Password,
		InboxPrefix: streams.TapInbox(user.User), Shards: shards,
	}
}

const (
	connectTimeout = 5 * time.Second
	// The pause before a reconnect grows from firstWait to maxWait.
	firstWait    = 100 * time.Millisecond
	maxWait      = 2 * time.Second
	pingInterval = 15 * time.Second
	// rejectedTimeout is how long the broker must reject a reconnecting tap until it gives up. The
	// broker also rejects logins while no service is running that decides about them.
	rejectedTimeout = 2 * time.Minute
)

// Connect connects to the broker as a tap. The connection reconnects without limit, but is closed
// once the broker has rejected the credentials for two minutes. Connect returns ErrRejected if the
// broker rejects them at once.
func Connect(
	ctx context.Context, c Credentials, logger *slog.Logger, opts ...nats.Option,
) (*nats.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	secure, err := streams.Credentials{Authority: c.Authority}.TLS()
	if err != nil {
		return nil, fmt.Errorf("the tap's credentials: %w", err)
	}
	own := []nats.Option{
		nats.Name("hubcloud tap"), nats.UserInfo(c.User, c.Password),
		nats.CustomInboxPrefix(c.InboxPrefix), nats.Timeout(connectTimeout), nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(wait), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(
			pingInterval,
		), nats.MaxPingsOutstanding(2), streams.WithLog(logger), closeRejected(logger),
	}
	if secure != nil {
		own = append(own, nats.Secure(secure))
	}
	nc, err := nats.Connect(c.URL, append(own, opts...)...)
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, fmt.Errorf("%w (%s at %s)", ErrRejected, c.User, c.URL)
	}
	if err != nil {
		return nil, fmt.Errorf(
			"connect to the broker's account %s at %s: %w", streams.AccountTap, c.URL, err,
		)
	}
	return nc, nil
}

// wait returns the pause before the next attempt to reconnect.
func wait(attempts int) time.Duration { return min(firstWait<<min(attempts, 10), maxWait) }

// closeRejected returns an option that closes a connection whose login has been rejected for
// rejectedTimeout. The first rejection since the last successful login is logged.
func closeRejected(logger *slog.Logger) nats.Option {
	return func(o *nats.Options) error {
		report, regained := o.AsyncErrorCB, o.ReconnectedCB
		// nats.go does not call these callbacks concurrently.
		var since time.Time
		o.AsyncErrorCB = func(nc *nats.Conn, sub *nats.Subscription, err error) {
			switch {
			case !errors.Is(err, nats.ErrAuthorization):
				report(nc, sub, err)
			case since.IsZero():
				since = time.Now()
				logger.Warn("broker rejects the credentials; retrying", "user", o.User)
			case time.Since(since) > rejectedTimeout:
				nc.Close()
			}
		}
		o.ReconnectedCB = func(nc *nats.Conn) {
			since = time.Time{}
			regained(nc)
		}
		return nil
	}
}
