// Package signin keeps who is signed in to the portal, in the bucket `sign-in`: sessions, the links
// that begin them, and which forms of a session were sent.
//
// # Promises
//
//   - A token has 256 random bits and is kept nowhere: only its SHA-256 is, so what is read out of
//     the bucket signs nobody in.
//   - A link is used once, also when several try at the same moment on several replicas: it is
//     removed on the condition that nobody has.
//   - What has expired is refused from that moment, and leaves the bucket by itself.
//   - What was acknowledged is seen by whoever asks next, on every replica: the leader of the
//     bucket's stream is asked, never a copy that may be behind.
//   - A session that ends is told at once to those who wait for it (Ended) on every replica, as
//     long as Run runs there: one watch a process, however many wait.
//
// A Store is safe for concurrent use. It starts no goroutine of its own.
package signin

import (
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
)

const (
	tokenBytes = 32
	// Kinds of what is kept, in front of its hash.
	kindLink    = "link."
	kindSession = "session."
	kindForm    = "form."
	// goneTTL is how long the mark stays of what was removed.
	goneTTL = time.Minute
	// formLife is how long it is remembered that a form was sent.
	formLife = 24 * time.Hour
)

// Store keeps sessions and links.
type Store struct {
	nc   *nats.Conn
	kv   jetstream.KeyValue
	log  *slog.Logger
	ends ends
}

// New makes a Store over the bucket, which is in the account that nc is connected to. log gets what
// keeps Run from hearing; nil discards it.
func New(nc *nats.Conn, kv jetstream.KeyValue, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{nc: nc, kv: kv, log: log, ends: ends{open: map[string]*end{}}}
}

// NewLink keeps a link until it expires and gives its token.
func (s *Store) NewLink(ctx context.Context, link domain.SignInLink) (token string, err error) {
	return s.create(ctx, kindLink, link, link.ExpiresAt.Sub(link.CreatedAt))
}

// Link gives a link that can still be used, without using it: domain.ErrSignInLink for any other.
func (s *Store) Link(ctx context.Context, token string, now time.Time) (domain.SignInLink, error) {
	link, _, err := s.link(ctx, token, now)
	return link, err
}

// TakeLink uses a link. Of several who do, one gets it; the others get domain.ErrSignInLink, as for
// one that has expired or is none.
func (s *Store) TakeLink(
	ctx context.Context, token string, now time.Time,
) (domain.SignInLink, error) {
	link, revision, err := s.link(ctx, token, now)
	if err != nil {
		return domain.SignInLink{}, err
	}
	mine, err := s.claim(ctx, key(kindLink, token), revision, nil, nats.Header{
		"KV-Operation": {"PURGE"}, "Nats-Rollup": {"sub"}, "Nats-TTL": {goneTTL.String()},
	})
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

// Begin keeps a session until it expires and gives its token.
func (s *Store) Begin(ctx context.Context, session domain.PortalSession) (token string, err error) {
	return s.create(ctx, kindSession, session, session.ExpiresAt.Sub(session.CreatedAt))
}

// Session gives a session that has neither ended nor expired: domain.ErrNotSignedIn for any other.
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

// End ends a session; one that there is not has ended.
func (s *Store) End(ctx context.Context, token string) error {
	if !isToken(token) {
		return nil
	}
	err := streams.Persist(ctx, func(ctx context.Context) error {
		return s.kv.Purge(ctx, key(kindSession, token), jetstream.PurgeTTL(goneTTL))
	})
	if err != nil {
		return unavailable(fmt.Errorf("sign-in: end a session: %w", err))
	}
	return nil
}

// Once says whether a session's form is sent for the first time, by the mark that it has. Of
// several that send it at the same moment, on whatever replicas, one is the first. It is remembered
// for a day.
func (s *Store) Once(ctx context.Context, token, mark string) (first bool, err error) {
	name := key(kindForm, token+" "+mark)
	for range maxConflicts {
		kept, err := streams.NewestKept(ctx, s.nc, s.kv.Bucket(), name)
		if err != nil {
			return false, unavailable(fmt.Errorf("sign-in: look for a form: %w", err))
		}
		if kept.Live() {
			return false, nil
		}
		first, err := s.claim(
			ctx, name, kept.Revision, nil, nats.Header{"Nats-TTL": {formLife.String()}},
		)
		if err != nil {
			return false, unavailable(fmt.Errorf("sign-in: remember a form: %w", err))
		}
		if first {
			return true, nil
		}
		// Another was first, or the mark of a form that was taken back has run out meanwhile.
	}
	return false, unavailable(fmt.Errorf("sign-in: remember a form: %w", streams.ErrDoubtful))
}

// Unsent has a form of a session taken for one that was not sent: Once is true for it again.
func (s *Store) Unsent(ctx context.Context, token, mark string) error {
	err := streams.Persist(ctx, func(ctx context.Context) error {
		return s.kv.Purge(ctx, key(kindForm, token+" "+mark), jetstream.PurgeTTL(goneTTL))
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
	err = streams.Persist(ctx, func(ctx context.Context) error {
		var secret [tokenBytes]byte
		rand.Read(secret[:]) // never fails: it ends the program instead
		// A try whose answer was lost leaves a token that nobody knows.
		token = base64.RawURLEncoding.EncodeToString(secret[:])
		// The broker counts whole seconds.
		_, err := s.kv.Create(
			ctx, key(kind, token), content,
			jetstream.KeyTTL(max(life.Truncate(time.Second), time.Second)),
		)
		return err
	})
	if err != nil {
		return "", unavailable(fmt.Errorf("sign-in: keep a %s %w", kind, err))
	}
	return token, nil
}

// get reads what is kept under a token, and gives its revision: 0 when there is nothing.
func (s *Store) get(
	ctx context.Context, kind, token string, into any,
) (revision uint64, err error) {
	if !isToken(token) {
		return 0, nil
	}
	content, revision, err := streams.Newest(ctx, s.nc, s.kv.Bucket(), key(kind, token))
	if err != nil {
		return 0, unavailable(fmt.Errorf("sign-in: %w", err))
	}
	if revision == 0 {
		return 0, nil
	}
	if err := json.Unmarshal(content, into); err != nil {
		return 0, fmt.Errorf("sign-in: what is kept is no %s: %w", kind, err)
	}
	return revision, nil
}

// unavailable returns an error of the broker that passes as a domain.Unavailable.
func unavailable(err error) error {
	return streams.Unavailable(
		err, "sessions cannot be looked up or kept at the moment: try again in a few seconds",
	)
}

// key names what is kept under a token: by its hash.
func key(kind, token string) string {
	sum := sha256.Sum256([]byte(token))
	return kind + hex.EncodeToString(sum[:])
}

// isToken says whether a text has a token's form: for all else nobody is asked.
func isToken(token string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	return err == nil && len(raw) == tokenBytes &&
		len(token) == base64.RawURLEncoding.EncodedLen(tokenBytes)
}
