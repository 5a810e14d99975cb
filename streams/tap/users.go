package tap

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
	"hubcloud/streams/jsapi"
)

var (
	// ErrName reports a name that is not allowed.
	ErrName = errors.New(
		`name: must be 1 to 40 of a-z, 0-9, "-" and "_", and begin with a letter or a digit`,
	)
	// ErrExists reports that credentials with the name exist.
	ErrExists = errors.New("credentials exist already")
	// ErrUnknown reports that no credentials with the name exist.
	ErrUnknown = errors.New("no such credentials")
	// ErrFull reports that all accounts of taps are in use.
	ErrFull = fmt.Errorf(
		"at most %d tap credentials are allowed: revoke some first", streams.MaxTaps,
	)
)

// keyPrefix precedes a user's name in the bucket, userPrefix in its login. No user of the service
// itself has a login with that prefix.
const (
	keyPrefix  = "tap."
	userPrefix = "tap-"
)

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// Users are the broker users of taps, in the bucket `installation`. Each has an account of its own
// (streams.TapAccount) and a password, of which only the hash is stored.
//
// The auth callout checks every new connection with Admit. Creating, renewing or revoking a user
// therefore takes effect on every replica when the call returns. Connections that are already open
// are not closed here: the caller must close them.
type Users struct {
	nc *nats.Conn
	kv jetstream.KeyValue
}

// NewUsers returns the users. nc must be a connection to the account CLOUD.
func NewUsers(nc *nats.Conn, installation jetstream.KeyValue) *Users {
	return &Users{nc: nc, kv: installation}
}

// User describes a user, without its password.
type User struct {
	Name string
	// User is the user name of its login.
	User string
	// CreatedAt is the time of creation, RenewedAt the time of the current password.
	CreatedAt, RenewedAt time.Time
}

// record is a user as stored in the bucket. A password is 256 random bits, so its hash needs
// neither salt nor key stretching.
type record struct {
	CreatedAt time.Time `json:"created_at"`
	RenewedAt time.Time `json:"renewed_at"`
	SHA256    []byte    `json:"password_sha256"`
}

// Create creates a user and returns its login. It returns ErrName, ErrExists, ErrFull or an error
// of the broker.
func (u *Users) Create(ctx context.Context, name string, now time.Time) (streams.User, error) {
	if !namePattern.MatchString(name) {
		return streams.User{}, fmt.Errorf("%w: %q", ErrName, name)
	}
	user, value, err := makeUser(name, now, now)
	if err != nil {
		return streams.User{}, err
	}
	if _, err := u.number(ctx, name); err != nil {
		return streams.User{}, err
	}
	if _, err = u.kv.Create(ctx, keyPrefix+name, value); errors.Is(err, jetstream.ErrKeyExists) {
		return streams.User{}, fmt.Errorf("%w: %s", ErrExists, name)
	}
	return user, err
}

// Renew replaces the user's password and returns the new login. It returns ErrUnknown or an error
// of the broker.
func (u *Users) Renew(ctx context.Context, name string, now time.Time) (streams.User, error) {
	found, revision, err := u.find(ctx, name)
	if err != nil {
		return streams.User{}, err
	}
	user, value, err := makeUser(name, found.CreatedAt, now)
	if err != nil {
		return streams.User{}, err
	}
	_, err = u.kv.Update(ctx, keyPrefix+name, value, revision)
	return user, err
}

// Revoke deletes a user. Its account stays assigned until Release, which must be called after the
// user's connections have been closed. Revoke returns ErrUnknown or an error of the broker.
func (u *Users) Revoke(ctx context.Context, name string) error {
	_, revision, err := u.find(ctx, name)
	if err != nil {
		return err
	}
	return u.kv.Delete(ctx, keyPrefix+name, jetstream.LastRevision(revision))
}

// List returns all users, sorted by name.
func (u *Users) List(ctx context.Context) ([]User, error) {
	lister, err := u.kv.ListKeysFiltered(ctx, keyPrefix+">")
	if err != nil {
		return nil, err
	}
	var users []User
	for key := range lister.Keys() {
		name := strings.TrimPrefix(key, keyPrefix)
		found, _, err := u.find(ctx, name)
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

// UserOf returns the user name with which the credentials of that name log in.
func UserOf(name string) string { return userPrefix + name }

// Admit returns the user's account if the user exists and the password is its current one, and ""
// otherwise. It may return an error of the broker.
func (u *Users) Admit(ctx context.Context, user, password string) (streams.Account, error) {
	name, ok := strings.CutPrefix(user, userPrefix)
	if !ok || !namePattern.MatchString(name) {
		return "", nil
	}
	found, _, err := u.find(ctx, name)
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
	number, err := u.number(ctx, name)
	if err != nil {
		return "", err
	}
	return streams.TapAccount(number), nil
}

func makeUser(name string, created, renewed time.Time) (streams.User, []byte, error) {
	var entropy [32]byte
	rand.Read(entropy[:]) // never returns an error
	user := streams.User{
		User:     UserOf(name),
		Password: base64.RawURLEncoding.EncodeToString(entropy[:]),
	}
	hash := sha256.Sum256([]byte(user.Password))
	value, err := json.Marshal(
		record{CreatedAt: created.UTC(), RenewedAt: renewed.UTC(), SHA256: hash[:]},
	)
	return user, value, err
}

// find reads a user from the bucket's leader.
func (u *Users) find(ctx context.Context, name string) (found record, revision uint64, err error) {
	if !namePattern.MatchString(name) {
		return found, 0, fmt.Errorf("%w: %q", ErrName, name)
	}
	entry, err := jsapi.NewBucket(u.nc, u.kv.Bucket()).GetJSON(ctx, keyPrefix+name, &found)
	if err != nil {
		return found, 0, fmt.Errorf("read tap credentials %s: %w", name, err)
	}
	if !entry.Exists() {
		return found, 0, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	return found, entry.Revision, nil
}
