package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/jsapi"
)

// ErrIncompatible reports that a stream or bucket on the broker has other properties than those
// declared. It was not changed.
var ErrIncompatible = errors.New("incompatible with what is on the broker")

// Declare returns the declared stream. It creates a missing stream, and changes the number of
// replicas of an existing one; 0 replicas keeps their number, or creates one. Any other difference
// is ErrIncompatible and leaves the stream unchanged.
func Declare(
	ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig,
) (stream jetstream.Stream, err error) {
	err = jsapi.SetUp(ctx, func(ctx context.Context) error {
		stream, err = declare(ctx, js, want)
		return err
	})
	return stream, err
}

func declare(
	ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig,
) (jetstream.Stream, error) {
	stream, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		// If another replica creates the same stream at the same moment, both succeed.
		config := want
		config.Replicas = max(want.Replicas, 1)
		stream, err = js.CreateStream(ctx, config)
	}
	if err != nil {
		return nil, fmt.Errorf("declare stream %s: %w", want.Name, err)
	}
	got := stream.CachedInfo().Config
	if err := checkDeclared(want, got); err != nil {
		return nil, fmt.Errorf("stream %s: %w", want.Name, err)
	}
	if want.Replicas > 0 && got.Replicas != want.Replicas {
		got.Replicas = want.Replicas
		if stream, err = js.UpdateStream(ctx, got); err != nil {
			return nil, fmt.Errorf("give stream %s %d replicas: %w", want.Name, want.Replicas, err)
		}
	}
	return stream, nil
}

// checkDeclared returns ErrIncompatible, with all differences, if got differs in a property that
// promises depend on. It ignores replicas and what the broker sets by itself.
func checkDeclared(want, got jetstream.StreamConfig) error {
	var differences []string
	differ := func(name string, want, got any) {
		if want != got {
			differences = append(differences, fmt.Sprintf("%s is %v, want %v", name, got, want))
		}
	}
	if !slices.Equal(want.Subjects, got.Subjects) {
		differ("subjects", strings.Join(want.Subjects, " "), strings.Join(got.Subjects, " "))
	}
	differ("retention", want.Retention, got.Retention)
	differ("storage", want.Storage, got.Storage)
	differ("max_age", want.MaxAge, got.MaxAge)
	differ("max_msgs", unlimited(want.MaxMsgs), unlimited(got.MaxMsgs))
	differ("max_bytes", unlimited(want.MaxBytes), unlimited(got.MaxBytes))
	differ(
		"max_msgs_per_subject", unlimited(want.MaxMsgsPerSubject), unlimited(got.MaxMsgsPerSubject),
	)
	differ("discard", want.Discard, got.Discard)
	differ("deny_delete", want.DenyDelete, got.DenyDelete)
	differ("deny_purge", want.DenyPurge, got.DenyPurge)
	differ("allow_rollup_hdrs", want.AllowRollup, got.AllowRollup)
	differ("allow_direct", want.AllowDirect, got.AllowDirect)
	differ("allow_atomic", want.AllowAtomicPublish, got.AllowAtomicPublish)
	differ("allow_msg_ttl", want.AllowMsgTTL, got.AllowMsgTTL)
	differ("subject_delete_marker_ttl", want.SubjectDeleteMarkerTTL, got.SubjectDeleteMarkerTTL)
	differ("persist_mode", want.PersistMode, got.PersistMode)
	differ("sealed", want.Sealed, got.Sealed)
	differ("republish", republish(want.RePublish), republish(got.RePublish))
	if len(differences) > 0 {
		return fmt.Errorf("%w: %s", ErrIncompatible, strings.Join(differences, ", "))
	}
	return nil
}

// unlimited returns 0 for every value that means no limit.
func unlimited(n int64) int64 { return max(n, 0) }

func republish(r *jetstream.RePublish) string {
	if r == nil {
		return "none"
	}
	return fmt.Sprintf("%s to %s (headers only: %t)", r.Source, r.Destination, r.HeadersOnly)
}
