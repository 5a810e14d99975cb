// Package signin stores the sessions of the portal in the bucket `sign-in`, with the links that
// begin them, the forms that a session has sent, the invitations whose links have signed in, and
// counters for rate limits.
//
// # Promises
//
//   - A token has 256 random bits. The bucket contains only its SHA-256, so its content is of no
//     use for signing in.
//   - A link works once, also when several replicas use it at the same moment: it is removed on
//     condition that it is unchanged.
//   - An expired link or session is rejected from that moment, and the broker removes it.
//   - Reads are up to date on every replica: they ask the leader of the bucket's stream, never a
//     copy that may be behind.
//   - The channel of Ended is closed at once on every replica where Run runs. A process has one
//     watch for all of them.
//
// A Store is safe for concurrent use. It starts no goroutine.
package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	tokenBytes = 32
	// Prefixes of the keys. A hash follows.
	kindLink    = "link."
	kindSession = "session."
	kindForm    = "form."
	kindUsed    = "used."
	// goneTTL is how long the broker keeps the marker of a removed key.
	goneTTL = time.Minute
	// formLife is how long a form that was sent is remembered.
	formLife = 24 * time.Hour
)

// Store stores sessions and links.
type Store struct {
	nc *nats.Conn
	kv jetstream.KeyValue
	// bucket is kv, read from its leader.
	bucket  jsapi.Bucket
	logger  *slog.Logger
	waiters waiters
}

// New returns a Store of the bucket, which is in the account that nc is connected to. A nil logger
// means slog.Default().
func New(nc *nats.Conn, kv jetstream.KeyValue, logger *slog.Logger) *Store {
	return &Store{
		nc: nc, kv: kv, bucket: jsapi.NewBucket(nc, kv.Bucket()),
		logger:  cmp.Or(logger, slog.Default()),
		waiters: waiters{bySession: map[string]*waiter{}},
	}
}

// NewLink stores a link until it expires and returns its token.
func (s *Store) NewLink(ctx context.Context, link domain.SignInLink) (token string, err error) {
	return s.create(ctx, kindLink, link, link.ExpiresAt.Sub(link.CreatedAt))
}

// Link returns a link without using it. A link that was used, has expired or does not exist is
// domain.ErrSignInLink.
func (s *Store) Link(ctx context.Context, token string, now time.Time) (domain.SignInLink, error) {
	link, _, err := s.link(ctx, token, now)
	return link, err
}

// UseLink uses a link and returns it. Of several concurrent calls one succeeds. The others get
// domain.ErrSignInLink, as for a link that has expired or does not exist.
func (s *Store) UseLink(
	ctx context.Context, token string, now time.Time,
) (domain.SignInLink, error) {
	link, revision, err := s.link(ctx, token, now)
	if err != nil {
		return domain.SignInLink{}, err
	}
	mine, err := s.claim(ctx, key(kindLink, token), revision, nil, jsapi.PurgeHeader(goneTTL))
	switch {
	case err != nil:
		return domain.SignInLink{}, unavailable(fmt.Errorf("sign-in: use a link: %w", err))
	case !mine:
		return domain.SignInLink{}, domain.ErrSignInLink()
	}
	return link, nil
}

func (s *Store) link(
	ctx context.Context, token string, now time.Time,
) (link domain.SignInLink, revision uint64, err error) {
	revision, err = s.get(ctx, kindLink, token, &link)
	if err != nil {
		return link, 0, err
	}
	if revision == 0 || !now.Before(link.ExpiresAt) {
		return domain.SignInLink{}, 0, domain.ErrSignInLink()
	}
	return link, revision, nil
}

// Begin stores a session until it expires and returns its token.
func (s *Store) Begin(ctx context.Context, session domain.PortalSession) (token string, err error) {
	return s.create(ctx, kindSession, session, session.ExpiresAt.Sub(session.CreatedAt))
}

// Session returns a session. A session that has ended, has expired or does not exist is
// domain.ErrNotSignedIn.
func (s *Store) Session(
	ctx context.Context, token string, now time.Time,
) (domain.PortalSession, error) {
	var session domain.PortalSession
	revision, err := s.get(ctx, kindSession, token, &session)
	if err != nil {
		return session, err
	}
	if revision == 0 || !now.Before(session.ExpiresAt) {
		return domain.PortalSession{}, domain.ErrNotSignedIn()
	}
	return session, nil
}

// End ends a session. A session that does not exist has ended already.
func (s *Store) End(ctx context.Context, token string) error {
	if !isToken(token) {
		return nil
	}
	err := jsapi.Retry{}.Do(ctx, func(ctx context.Context) error {
		return s.kv.Purge(ctx, key(kindSession, token), jetstream.PurgeTTL(goneTTL))
	})
	if err != nil {
		return unavailable(fmt.Errorf("sign-in: end a session: %w", err))
	}
	return nil
}

// ClaimForm reports whether the form of a session with that id is submitted for the first time. Of
// several concurrent calls, on all replicas, one gets true. Forms are remembered for a day.
func (s *Store) ClaimForm(ctx context.Context, token, form string) (first bool, err error) {
	return s.claimOnce(ctx, key(kindForm, token+" "+form), formLife)
}

// UseInvitation reports whether the link of an invitation, which ends at expires, signs in for the
// first time. That is remembered until it ends, and for at most streams.SignInTTL. Of several
// concurrent calls, on all replicas, one gets true.
func (s *Store) UseInvitation(
	ctx context.Context, token string, expires, now time.Time,
) (first bool, err error) {
	// The broker may count from a little earlier than now.
	life := min(expires.Sub(now)+time.Hour, streams.SignInTTL)
	return s.claimOnce(ctx, key(kindUsed, token), life)
}

// claimOnce reports whether this call is the first with that key within life.
func (s *Store) claimOnce(ctx context.Context, name string, life time.Duration) (bool, error) {
	for range maxConflicts {
		entry, err := s.bucket.Get(ctx, name)
		if err != nil {
			return false, unavailable(fmt.Errorf("sign-in: look up what was used: %w", err))
		}
		if entry.Exists() {
			return false, nil
		}
		first, err := s.claim(ctx, name, entry.Revision, nil, jsapi.TTLHeader(life))
		if err != nil {
			return false, unavailable(fmt.Errorf("sign-in: remember what was used: %w", err))
		}
		if first {
			return true, nil
		}
		// Another call was first, or the marker of a removed form has expired meanwhile.
	}
	return false, unavailable(fmt.Errorf("sign-in: remember what was used: %w", jsapi.ErrUnconfirmed))
}

// ReleaseForm forgets a form of a session: the next ClaimForm for it returns true again.
func (s *Store) ReleaseForm(ctx context.Context, token, form string) error {
	err := jsapi.Retry{}.Do(ctx, func(ctx context.Context) error {
		return s.kv.Purge(ctx, key(kindForm, token+" "+form), jetstream.PurgeTTL(goneTTL))
	})
	if err != nil {
		return unavailable(fmt.Errorf("sign-in: forget a form: %w", err))
	}
	return nil
}

func (s *Store) create(
	ctx context.Context, kind string, value any, life time.Duration,
) (token string, err error) {
	content, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("sign-in: %w", err)
	}
	err = jsapi.Retry{}.Do(ctx, func(ctx context.Context) error {
		var secret [tokenBytes]byte
		rand.Read(secret[:]) // never fails: it ends the program instead
		// A try whose answer is lost leaves a token that was returned to no caller.
		token = base64.RawURLEncoding.EncodeToString(secret[:])
		// The broker counts whole seconds.
		_, err := s.kv.Create(
			ctx, key(kind, token), content,
			jetstream.KeyTTL(max(life.Truncate(time.Second), time.Second)),
		)
		return err
	})
	if err != nil {
		return "", unavailable(fmt.Errorf("sign-in: store a %s %w", kind, err))
	}
	return token, nil
}

// get decodes the value of a token into into, and returns its revision; 0 for a token without a
// value.
func (s *Store) get(
	ctx context.Context, kind, token string, into any,
) (revision uint64, err error) {
	if !isToken(token) {
		return 0, nil
	}
	entry, err := s.bucket.GetJSON(ctx, key(kind, token), into)
	if err != nil {
		return 0, unavailable(fmt.Errorf("sign-in: %w", err))
	}
	if !entry.Exists() {
		return 0, nil
	}
	return entry.Revision, nil
}

// unavailable returns a temporary error of the broker as a domain.Unavailable.
func unavailable(err error) error {
	return jsapi.Unavailable(
		err, "sign-in is not available at the moment: try again in a few seconds",
	)
}

// key returns the key of a token's value, which contains the token's hash.
func key(kind, token string) string {
	sum := sha256.Sum256([]byte(token))
	return kind + hex.EncodeToString(sum[:])
}

// isToken reports whether a text has a token's form. Other texts are not looked up.
func isToken(token string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	return err == nil && len(raw) == tokenBytes &&
		len(token) == base64.RawURLEncoding.EncodedLen(tokenBytes)
}
