// Package installation keeps the settings of an installation in the broker: its id and its
// environment. Every replica and every operator's command reads them from there.
package installation

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/cmd/hubcloud/internal/usage"
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
	Environment string `json:"api_environment"`
	// Journals is the number of journals that the hub logs are written through. It is 0 in an
	// installation that was made before there were journals, until its first start since.
	Journals int `json:"journals,omitempty"`
}

// stored are the settings as they are stored.
type stored struct {
	Settings
	// Former is where the environment was in format 1. Its programs do not start while it is not
	// their own environment, and print it: they would append to the hub logs past the journal.
	Former string `json:"environment"`
}

// formerNote takes the place of the environment of format 1.
const formerNote = "of a newer version of hubcloud, which must start it"

func (s Settings) stored() stored { return stored{Settings: s, Former: formerNote} }

// settings returns the settings, also of format 1.
func (s stored) settings() Settings {
	s.Environment = cmp.Or(s.Environment, s.Former)
	return s.Settings
}

// ErrNeverStarted reports that the broker has no settings.
var ErrNeverStarted = errors.New("no service has been started on this broker yet")

// Read returns the settings of an installation. The error is ErrNeverStarted when there are none.
// Read asks the bucket's leader: another replica may lack a value written a moment ago.
func Read(ctx context.Context, cloud *nats.Conn, kv jetstream.KeyValue) (Settings, error) {
	var s stored
	entry, err := jsapi.NewBucket(cloud, kv.Bucket()).GetJSON(ctx, settingsKey, &s)
	if err == nil && !entry.Exists() {
		err = ErrNeverStarted
	}
	if err != nil {
		return Settings{}, fmt.Errorf("read the installation's settings: %w", err)
	}
	return s.settings(), nil
}

// Open returns the settings, and creates them at the installation's first start. An installation
// without journals gets that many. The error is a usage.Error when the installation has another
// environment.
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
	if err == nil && s.Journals == 0 {
		s, err = setJournals(ctx, cloud, kv, journals)
	}
	if err != nil {
		return s, err
	}
	if s.Environment != environment {
		return s, usage.Errorf(
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
	text, err := json.Marshal(Settings{
		ID: newID(), Environment: environment, Journals: journals,
	}.stored())
	if err != nil {
		return err
	}
	if _, err := kv.Create(ctx, settingsKey, text); !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	return nil
}

// setJournals sets the number of journals of an installation that has none, unless another replica
// has just set it.
func setJournals(
	ctx context.Context, cloud *nats.Conn, kv jetstream.KeyValue, journals int,
) (Settings, error) {
	var found stored
	bucket := jsapi.NewBucket(cloud, kv.Bucket())
	entry, err := bucket.GetJSON(ctx, settingsKey, &found)
	s := found.settings()
	if err == nil && s.Journals == 0 {
		s.Journals = journals
		_, err = bucket.CompareAndSetJSON(ctx, settingsKey, s.stored(), entry.Revision)
		if errors.Is(err, jsapi.ErrConflict) {
			return Read(ctx, cloud, kv)
		}
	}
	if err != nil {
		return s, fmt.Errorf("set the installation's number of journals: %w", err)
	}
	return s, nil
}

// ReplaceID assigns a restored installation a new id. The installation that the backup was taken of
// may still run, or its read models may be ahead of the backup.
func ReplaceID(ctx context.Context, cloud *nats.Conn, kv jetstream.KeyValue) error {
	s, err := Read(ctx, cloud, kv)
	if err != nil {
		return err
	}
	s.ID = newID()
	text, err := json.Marshal(s.stored())
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
