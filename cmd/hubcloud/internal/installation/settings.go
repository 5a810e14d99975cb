package installation

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/jsapi"
)

// settingsKey is the key of the settings in the bucket `installation`.
const settingsKey = "settings"

// Settings are fixed when an installation is created.
type Settings struct {
	// ID identifies the installation. Read models record it, so that the read models of one
	// installation are never filled from another.
	ID string `json:"id"`
	// Environment is the environment of the installation's API keys: live or dev.
	Environment string `json:"environment"`
	// Journals is the number of journals that the hub logs are written through.
	Journals int `json:"journals"`
}

// ErrNeverStarted reports that the broker has no settings.
var ErrNeverStarted = errors.New("no service has been started on this broker yet")

// Read returns the settings of an installation. The error is ErrNeverStarted when there are none.
// Read asks the bucket's leader: another replica may lack a value written a moment ago.
func Read(ctx context.Context, cloud *nats.Conn, kv jetstream.KeyValue) (Settings, error) {
	var s Settings
	entry, err := jsapi.NewBucket(cloud, kv.Bucket()).GetJSON(ctx, settingsKey, &s)
	if err == nil && !entry.Exists() {
		err = ErrNeverStarted
	}
	if err != nil {
		return Settings{}, fmt.Errorf("read the installation's settings: %w", err)
	}
	return s, nil
}

// Open returns the settings, and creates them at the installation's first start, with that many
// journals. The error is a UsageError when the installation has another environment.
func Open(
	ctx context.Context, cloud *nats.Conn, kv jetstream.KeyValue, environment string, journals int,
) (Settings, error) {
	s, err := Read(ctx, cloud, kv)
	if errors.Is(err, ErrNeverStarted) {
		if err := create(ctx, kv, environment, journals); err != nil {
			return s, fmt.Errorf("write the installation's settings: %w", err)
		}
		s, err = Read(ctx, cloud, kv)
	}
	if err != nil {
		return s, err
	}
	if s.Environment != environment {
		return s, Usagef(
			"this installation has the environment %q: with --environment %s it would reject all "+
				"of its API keys. Start it with --environment %s, or use another --data-dir",
			s.Environment, environment, s.Environment,
		)
	}
	return s, nil
}

// create writes the settings of a new installation. When two replicas start at once, one of them
// creates the settings and create returns nil for both.
func create(
	ctx context.Context, kv jetstream.KeyValue, environment string, journals int,
) error {
	text, err := json.Marshal(
		Settings{ID: newID(), Environment: environment, Journals: journals},
	)
	if err != nil {
		return err
	}
	if _, err := kv.Create(ctx, settingsKey, text); !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	return nil
}

// ReplaceID assigns a restored installation a new id. The installation that the backup was taken of
// may still run, or its read models may be ahead of the backup.
func ReplaceID(ctx context.Context, cloud *nats.Conn, kv jetstream.KeyValue) error {
	s, err := Read(ctx, cloud, kv)
	if err != nil {
		return err
	}
	s.ID = newID()
	text, err := json.Marshal(s)
	if err == nil {
		_, err = kv.Put(ctx, settingsKey, text)
	}
	if err != nil {
		return fmt.Errorf("write the installation's settings: %w", err)
	}
	return nil
}

// newID returns a random id of 16 bytes in hexadecimal.
func newID() string {
	var entropy [16]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	return hex.EncodeToString(entropy[:])
}
