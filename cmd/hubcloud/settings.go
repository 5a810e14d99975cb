package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/hubbridge/bucket"
)

// settingsKey is where the bucket `installation` keeps the settings.
const settingsKey = "settings"

// settings is what was settled when the installation was made. Every replica and every operator's
// command reads it from the broker.
type settings struct {
	// ID tells this installation from every other: read models of one are never filled from
	// another.
	ID string `json:"id"`
	// Environment is that of its API keys.
	Environment string `json:"environment"`
}

// errNeverStarted says that the broker has no settings.
var errNeverStarted = errors.New("no service has been started on this broker yet")

// readSettings reads the settings of an installation that has been started before. The leader is
// asked: another replica of the broker may not have what was written a moment ago.
func readSettings(ctx context.Context, cloud *nats.Conn, kv jetstream.KeyValue) (settings, error) {
	var s settings
	revision, err := bucket.New(cloud, kv.Bucket()).Get(ctx, settingsKey, &s)
	if err == nil && revision == 0 {
		err = errNeverStarted
	}
	if err != nil {
		return s, fmt.Errorf("read the installation's settings: %w", err)
	}
	return s, nil
}

// settle reads the settings, or makes them at the installation's first start. It refuses an
// environment other than the installation's.
func settle(
	ctx context.Context, cloud *nats.Conn, kv jetstream.KeyValue, environment string,
) (settings, error) {
	s, err := readSettings(ctx, cloud, kv)
	if errors.Is(err, errNeverStarted) {
		if err := makeSettings(ctx, kv, environment); err != nil {
			return s, fmt.Errorf("write the installation's settings: %w", err)
		}
		s, err = readSettings(ctx, cloud, kv)
	}
	if err != nil {
		return s, err
	}
	if s.Environment != environment {
		return s, usagef(
			"this installation is of the environment %q: with --environment %s none of its API keys would be taken. "+
				"Start it with --environment %s, or give the other one a --data-dir of its own",
			s.Environment,
			environment,
			s.Environment,
		)
	}
	return s, nil
}

// makeSettings makes the settings of a new installation. Of two replicas that start at once one
// makes them, and both read them then.
func makeSettings(ctx context.Context, kv jetstream.KeyValue, environment string) error {
	made, err := json.Marshal(settings{ID: newInstallationID(), Environment: environment})
	if err != nil {
		return err
	}
	if _, err := kv.Create(ctx, settingsKey, made); !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	return nil
}

// rename gives the installation another id.
func (s settings) rename(ctx context.Context, bucket jetstream.KeyValue) error {
	s.ID = newInstallationID()
	renamed, err := json.Marshal(s)
	if err == nil {
		_, err = bucket.Put(ctx, settingsKey, renamed)
	}
	if err != nil {
		return fmt.Errorf("write the installation's settings: %w", err)
	}
	return nil
}

// newInstallationID makes an id that no other installation has.
func newInstallationID() string {
	var entropy [16]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	return hex.EncodeToString(entropy[:])
}
