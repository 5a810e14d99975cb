// Package tapuser keeps who may read hub logs from outside: users of the broker with passwords, of
// which only hashes are stored, each in an account of its own (streams.TapAccount). The auth
// callout asks it about each connection, so what was made, renewed or revoked here is in force when
// the call returns, on every replica; connections that are there already are for others to cut.
package tapuser

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
)

// Errors of what is asked for.
var (
	// ErrName says that a name is none.
	ErrName = errors.New(
		`a name has 1 to 40 of a-z, 0-9, "-" and "_", and begins with a letter or a digit`,
	)
	// ErrExists says that there are credentials of that name, and ErrUnknown that there are none.
	ErrExists = errors.New("there are credentials of that name")
	// ErrFull says that every account of a tap is taken.
	ErrFull = fmt.Errorf(
		"there are %d credentials of taps, as many as there may be: revoke some first",
		streams.MaxTaps,
	)
	ErrUnknown = errors.New("there are no credentials of that name")
)

// keyPrefix stands before a name in the bucket, userPrefix in what it logs in with: no user of the
// service's own is called so.
const (
	keyPrefix  = "tap."
	userPrefix = "tap-"
)

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// Store keeps the users in the bucket `installation`.
type Store struct {
	nc *nats.Conn
	kv jetstream.KeyValue
}

// New makes a Store over a connection to the account CLOUD and the bucket.
func New(nc *nats.Conn, installation jetstream.KeyValue) *Store {
	return &Store{nc: nc, kv: installation}
}

// User is one of them, without the password.
type User struct {
	Name string
	// User is what it logs in with.
	User string
	// CreatedAt is when it was made, RenewedAt when it got its present password.
	CreatedAt, RenewedAt time.Time
}

// kept is what the bucket has. A password is 256 random bits: its hash needs no salt and no
// stretching.
type kept struct {
	CreatedAt time.Time `json:"created_at"`
	RenewedAt time.Time `json:"renewed_at"`
	SHA256    []byte    `json:"password_sha256"`
}

// Create makes a user and says how it logs in. Errors: ErrName, ErrExists, ErrFull, and those of
// the broker.
func (s *Store) Create(ctx context.Context, name string, now time.Time) (streams.User, error) {
	if !namePattern.MatchString(name) {
		return streams.User{}, fmt.Errorf("%w: %q", ErrName, name)
	}
	user, value, err := makeUser(name, now, now)
	if err != nil {
		return streams.User{}, err
	}
	if _, err := s.number(ctx, name); err != nil {
		return streams.User{}, err
	}
	if _, err = s.kv.Create(ctx, keyPrefix+name, value); errors.Is(err, jetstream.ErrKeyExists) {
		return streams.User{}, fmt.Errorf("%w: %s", ErrExists, name)
	}
	return user, err
}

// Renew gives a user another password; the one before is worth nothing any more. Errors:
// ErrUnknown, and those of the broker.
func (s *Store) Renew(ctx context.Context, name string, now time.Time) (streams.User, error) {
	found, revision, err := s.find(ctx, name)
	if err != nil {
		return streams.User{}, err
	}
	user, value, err := makeUser(name, found.CreatedAt, now)
	if err != nil {
		return streams.User{}, err
	}
	_, err = s.kv.Update(ctx, keyPrefix+name, value, revision)
	return user, err
}

// Revoke takes a user away. Its account is free when Release has been called, which is for after
// its connections were cut. Errors: ErrUnknown, and those of the broker.
func (s *Store) Revoke(ctx context.Context, name string) error {
	_, revision, err := s.find(ctx, name)
	if err != nil {
		return err
	}
	return s.kv.Delete(ctx, keyPrefix+name, jetstream.LastRevision(revision))
}

// List gives all users, by name.
func (s *Store) List(ctx context.Context) ([]User, error) {
	lister, err := s.kv.ListKeysFiltered(ctx, keyPrefix+">")
	if err != nil {
		return nil, err
	}
	var users []User
	for key := range lister.Keys() {
		name := strings.TrimPrefix(key, keyPrefix)
		found, _, err := s.find(ctx, name)
		switch {
		case err == nil:
			users = append(
				users,
				User{
					Name:      name,
					User:      UserOf(name),
					CreatedAt: found.CreatedAt,
					RenewedAt: found.RenewedAt,
				},
			)
		case !errors.Is(err, ErrUnknown):
			return nil, errors.Join(err, lister.Stop())
		}
	}
	slices.SortFunc(users, func(a, b User) int { return strings.Compare(a.Name, b.Name) })
	return users, nil
}

// UserOf is what the credentials of a name log in with.
func UserOf(name string) string { return userPrefix + name }

// Admit returns the account of somebody who logs in as one of the users, with its present password,
// and "" for everybody else. The error is the broker's, or ErrFull: credentials from before each
// had an account get one when they are used first.
func (s *Store) Admit(ctx context.Context, user, password string) (streams.Account, error) {
	name, ok := strings.CutPrefix(user, userPrefix)
	if !ok || !namePattern.MatchString(name) {
		return "", nil
	}
	found, _, err := s.find(ctx, name)
	if errors.Is(err, ErrUnknown) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(password))
	if subtle.ConstantTimeCompare(hash[:], found.SHA256) != 1 {
		return "", nil
	}
	number, err := s.number(ctx, name)
	if err != nil {
		return "", err
	}
	return streams.TapAccount(number), nil
}

func makeUser(name string, created, renewed time.Time) (streams.User, []byte, error) {
	var entropy [32]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	user := streams.User{
		User:     UserOf(name),
		Password: base64.RawURLEncoding.EncodeToString(entropy[:]),
	}
	hash := sha256.Sum256([]byte(user.Password))
	value, err := json.Marshal(
		kept{CreatedAt: created.UTC(), RenewedAt: renewed.UTC(), SHA256: hash[:]},
	)
	return user, value, err
}

// find reads a user as the bucket's leader has it.
func (s *Store) find(ctx context.Context, name string) (found kept, revision uint64, err error) {
	if !namePattern.MatchString(name) {
		return found, 0, fmt.Errorf("%w: %q", ErrName, name)
	}
	value, revision, err := streams.Newest(ctx, s.nc, s.kv.Bucket(), keyPrefix+name)
	if err != nil {
		return found, 0, fmt.Errorf("credentials of the tap %s: %w", name, err)
	}
	if revision == 0 {
		return found, 0, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	if err := json.Unmarshal(value, &found); err != nil {
		return found, 0, fmt.Errorf("credentials of the tap %s: %w", name, err)
	}
	return found, revision, nil
}
