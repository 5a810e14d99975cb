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

// Credentials say how to log in as a tap: the file of `hubcloud tap credentials`. It is at the same
// time a context of the nats command line, which passes over what it does not know.
type Credentials struct {
	Description string `json:"description"`
	// URL is the broker's address; several are separated by commas.
	URL      string `json:"url"`
	User     string `json:"user"`
	Password string `json:"password"`
	// InboxPrefix is where alone the user may be answered.
	InboxPrefix string `json:"inbox_prefix"`
	// Shards is how many shards the installation has: whoever reads logs must know which shard has
	// a hub's.
	Shards int `json:"shards"`
	// Authority is as in the service's own credentials: the certificate (PEM) that vouches for a
	// broker that is reached over TLS.
	Authority string `json:"authority,omitempty"`
}

// ReadCredentials reads a file of `hubcloud tap credentials`, or takes the tap's part of the
// service's own credentials.
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
		// The decoder's error can quote the text, which holds a password.
		return Credentials{}, fmt.Errorf(
			"read the tap's credentials: %s is not a credentials file", path,
		)
	}
	c := file.Credentials
	if file.Users != nil {
		user, ok := file.Users[streams.AccountTap]
		if !ok {
			return Credentials{}, fmt.Errorf(
				"%s has no user for the account %s: the broker was set up before there were taps",
				path, streams.AccountTap,
			)
		}
		c.User, c.Password, c.InboxPrefix = user.User, user.Password, streams.TapInbox(user.User)
	}
	if c.User == "" || c.InboxPrefix == "" || c.Shards < 1 || c.Shards > streams.MaxShards {
		return Credentials{}, fmt.Errorf("%s is not a file of `hubcloud tap credentials`", path)
	}
	return c, nil
}

// ForUser makes the credentials of a tap's user.
func ForUser(url string, shards int, user streams.User) Credentials {
	return Credentials{
		Description: "hubcloud tap: reads the events of all hubs, and nothing else",
		URL:         url, User: user.User, Password: user.Password,
		InboxPrefix: streams.TapInbox(user.User), Shards: shards,
	}
}

const (
	connectTimeout = 5 * time.Second
	// The pause before a lost connection is made again grows from firstWait to maxWait.
	firstWait    = 100 * time.Millisecond
	maxWait      = 2 * time.Second
	pingInterval = 15 * time.Second
	// refusedTimeout is how long a tap that was let in before is refused until it gives up. A
	// broker refuses as well while it has nobody yet who answers for its users, such as when a
	// service is starting.
	refusedTimeout = 2 * time.Minute
)

// Connect logs in as a tap. The connection comes back by itself, for ever, but ends when it has
// been refused for two minutes: then the credentials were revoked or renewed. ErrRefused when they
// are refused at once.
func Connect(
	ctx context.Context, c Credentials, log *slog.Logger, opts ...nats.Option,
) (*nats.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	secure, err := streams.Credentials{Authority: c.Authority}.TLS()
	if err != nil {
		return nil, fmt.Errorf("the tap's credentials: %w", err)
	}
	own := []nats.Option{
		nats.Name(
			"hubcloud tap",
		), nats.UserInfo(c.User, c.Password), nats.CustomInboxPrefix(c.InboxPrefix),
		nats.Timeout(
			connectTimeout,
		), nats.MaxReconnects(-1), nats.CustomReconnectDelay(wait), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(
			pingInterval,
		), nats.MaxPingsOutstanding(2), streams.WithLog(log), giveUpRefused(log),
	}
	if secure != nil {
		own = append(own, nats.Secure(secure))
	}
	nc, err := nats.Connect(c.URL, append(own, opts...)...)
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, fmt.Errorf("%w (%s at %s)", ErrRefused, c.User, c.URL)
	}
	if err != nil {
		return nil, fmt.Errorf(
			"connect to the broker's account %s at %s: %w", streams.AccountTap, c.URL, err,
		)
	}
	return nc, nil
}

// wait is the pause before the next round of attempts to connect again.
func wait(attempts int) time.Duration { return min(firstWait<<min(attempts, 10), maxWait) }

// giveUpRefused closes a connection that has been refused for too long. It says so the first time,
// and not again until it is let in.
func giveUpRefused(log *slog.Logger) nats.Option {
	return func(o *nats.Options) error {
		report, regained := o.AsyncErrorCB, o.ReconnectedCB
		// The library calls these one after the other.
		var since time.Time
		o.AsyncErrorCB = func(nc *nats.Conn, sub *nats.Subscription, err error) {
			switch {
			case !errors.Is(err, nats.ErrAuthorization):
				report(nc, sub, err)
			case since.IsZero():
				since = time.Now()
				log.Warn("the broker refuses the credentials; trying again", "user", o.User)
			case time.Since(since) > refusedTimeout:
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
