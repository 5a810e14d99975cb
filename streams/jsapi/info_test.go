package jsapi_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

func TestGet(t *testing.T) {
	t.Parallel()
	nc := newStream(t)
	api, ctx := jsapi.New(nc), t.Context()
	if _, err := api.GetLast(ctx, testStream, "test.a"); !errors.Is(err, jsapi.ErrNotFound) {
		t.Errorf("GetLast of an empty stream: %v; want ErrNotFound", err)
	}
	store(t, nc, "test.a", "a", "b")
	store(t, nc, "test.b", "c")
	deleteMessage(t, nc, 1)
	if m, err := api.GetLast(ctx, testStream, "test.a"); err != nil || m.Sequence != 2 ||
		string(m.Data) != "b" || m.Subject != "test.a" || m.Time.IsZero() {
		t.Errorf("GetLast: %+v, %v; want sequence 2", m, err)
	}
	if _, err := api.Get(ctx, testStream, 1); !errors.Is(err, jsapi.ErrNotFound) {
		t.Errorf("Get of a deleted message: %v; want ErrNotFound", err)
	}
	if m, err := api.GetNext(ctx, testStream, 1, "test.>"); err != nil || m.Sequence != 2 {
		t.Errorf("GetNext from a deleted message: %+v, %v; want sequence 2", m, err)
	}
	if _, err := api.GetNext(ctx, testStream, 3, "test.a"); !errors.Is(err, jsapi.ErrNotFound) {
		t.Errorf("GetNext behind the last: %v; want ErrNotFound", err)
	}
	if _, err := api.GetLast(ctx, "NONE", "test.a"); !errors.Is(err, jsapi.ErrNoStream) {
		t.Errorf("GetLast without a stream: %v; want ErrNoStream", err)
	}
	for range 2 { // once more is no error
		if err := api.Erase(ctx, testStream, 3); err != nil {
			t.Errorf("Erase: %v", err)
		}
	}
	if n, err := api.CountSubjects(ctx, testStream, "test.>"); err != nil || n != 1 {
		t.Errorf("CountSubjects: %d, %v; want 1", n, err)
	}
	if names, err := api.Names(ctx); err != nil || !slices.Equal(names, []string{testStream}) {
		t.Errorf("Names: %v, %v; want %s", names, err, testStream)
	}
	for range 2 {
		if err := api.Delete(ctx, testStream); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	if _, err := api.Info(ctx, testStream); !errors.Is(err, jsapi.ErrNoStream) {
		t.Errorf("Info of a deleted stream: %v; want ErrNoStream", err)
	}
}

// An answer without a leader is asked for again: a follower's, a deposed leader's, an error, none.
func TestReadsWaitForLeader(t *testing.T) {
	t.Parallel()
	nc := streamstest.Start(t).Cloud
	state := func(last uint64, group *jetstream.ClusterInfo) string {
		return toJSON(t, jetstream.StreamInfo{
			State: jetstream.StreamState{LastSeq: last}, Cluster: group,
		})
	}
	follower := &jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{{Name: "a"}, {Name: "b"}}}
	deposed := &jetstream.ClusterInfo{Leader: "c", Replicas: []*jetstream.PeerInfo{
		{Name: "a", Active: jsapi.LeaderActive + time.Second}, {Name: "b"},
	}}
	leader := &jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{
		{Name: "b", Active: time.Second}, {Name: "c"},
	}}
	asked := respond(t, nc, "x.STREAM.INFO."+testStream,
		noLeaderAnswer, state(1, follower), "", state(2, deposed), state(7, leader))
	api := jsapi.New(nc).WithPrefix("x").WithRetry(jsapi.Retry{Try: 100 * time.Millisecond})
	info, err := api.Info(t.Context(), testStream)
	if err != nil || info.State.LastSeq != 7 || asked() < 5 {
		t.Errorf("Info: %+v, %v after %d requests; want sequence 7 after 5 or more", info, err, asked())
	}
	respond(t, nc, "y.STREAM.INFO."+testStream, state(1, follower))
	// The context may end during a request.
	streamstest.Eventually(t, "Info without a leader returns ErrNoLeader", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err = jsapi.New(nc).WithPrefix("y").Info(ctx, testStream)
		if !jsapi.IsTemporary(err) {
			t.Fatalf("Info without a leader: %v; want a temporary error", err)
		}
		return errors.Is(err, jsapi.ErrNoLeader)
	})
	asked = respond(t, nc, "z.STREAM.MSG.GET."+testStream, noLeaderAnswer, "",
		`{"message":{"subject":"test.a","seq":3,"data":"eA=="}}`)
	api = jsapi.New(nc).WithPrefix("z").WithRetry(jsapi.Retry{Try: 100 * time.Millisecond})
	m, err := api.GetLast(t.Context(), testStream, "test.a")
	if err != nil || m.Sequence != 3 || string(m.Data) != "x" || asked() < 3 {
		t.Errorf("GetLast: %+v, %v after %d requests; want sequence 3 after 3 or more", m, err, asked())
	}
}

// A stream's end before a sequence that was seen is believed only when the leader repeats it.
func TestConfirmedInfo(t *testing.T) {
	t.Parallel()
	nc := streamstest.Start(t).Cloud
	info := func(last uint64) string {
		return toJSON(t, jetstream.StreamInfo{
			State: jetstream.StreamState{LastSeq: last},
			Cluster: &jetstream.ClusterInfo{
				Leader: "a", Replicas: []*jetstream.PeerInfo{{Name: "b", Active: time.Second}},
			},
		})
	}
	asked := respond(t, nc, "x.STREAM.INFO."+testStream, info(5), info(5), info(9))
	got, err := jsapi.New(nc).WithPrefix("x").ConfirmedInfo(t.Context(), testStream, 9)
	if err != nil || got.State.LastSeq != 9 || asked() != 3 {
		t.Errorf("stale at first: %+v, %v after %d requests; want 9 after 3", got, err, asked())
	}
	respond(t, nc, "y.STREAM.INFO."+testStream, info(5))
	began := time.Now()
	got, err = jsapi.New(nc).WithPrefix("y").ConfirmedInfo(t.Context(), testStream, 9)
	if took := time.Since(began); err != nil || got.State.LastSeq != 5 ||
		took < jsapi.LeaderActive {
		t.Errorf("repeated: %+v, %v after %v; want 5 after some seconds", got, err, took)
	}
}
