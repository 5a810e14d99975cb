package streams_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// TestDeclare checks that declaring a stream again changes nothing, and that a stream with other
// properties is ErrIncompatible, with every difference, and stays unchanged.
func TestDeclare(t *testing.T) {
	t.Parallel()
	js := streamstest.JetStream(t, streamstest.Start(t).Cloud)
	config := jetstream.StreamConfig{
		Name: "TEST", Subjects: []string{"test.>"}, Storage: jetstream.FileStorage, Replicas: 1,
		DenyDelete: true, AllowDirect: true,
		RePublish: &jetstream.RePublish{Source: "test.>", Destination: "feed.test.>"},
	}
	for range 2 {
		if _, err := streams.Declare(t.Context(), js, config); err != nil {
			t.Fatal(err)
		}
	}
	other := config
	other.Subjects, other.MaxAge, other.MaxMsgs = []string{"test.a"}, time.Hour, 10
	other.DenyDelete, other.RePublish = false, nil
	_, err := streams.Declare(t.Context(), js, other)
	if !errors.Is(err, streams.ErrIncompatible) {
		t.Fatalf("Declare with other properties: got %v, want ErrIncompatible", err)
	}
	for _, difference := range []string{
		"subjects", "max_age", "deny_delete", "republish", "max_msgs is 0, want 10",
	} {
		if !strings.Contains(err.Error(), difference) {
			t.Errorf("error: got %v, want it to contain %q", err, difference)
		}
	}
	stream, err := js.Stream(t.Context(), "TEST")
	streamstest.Must(t, err)
	if got := stream.CachedInfo().Config.Subjects; !slices.Equal(got, config.Subjects) {
		t.Errorf("subjects after the failed Declare: got %v, want %v", got, config.Subjects)
	}
}
