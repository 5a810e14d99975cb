package backup

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// envEvents is the environment variable with the number of events in TestScale's directory.
const envEvents = "HUBCLOUD_TEST_BACKUP_EVENTS"

// TestScale writes and restores a backup of a long directory, and logs times and memory.
func TestScale(t *testing.T) {
	t.Parallel()
	events := 20_000
	if text := os.Getenv(envEvents); text != "" {
		var err error
		if events, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	i := newTestInstallation(t, 3, 0)
	event := domain.Record(
		domain.Origin{At: time.Now(), Actor: domain.Actor{Kind: domain.ActorOperator}},
		domain.SiteRenamed{
			OrgID:  i.OrgID,
			SiteID: i.SiteID,
			Name:   "A name of the usual length of names",
		},
	)
	event.ID = "01JD5Q3W8ZV6K2M4N7P9R1S3T5"
	text, err := domain.EncodeEvent(event)
	if err != nil {
		t.Fatal(err)
	}
	sending, err := jsapi.NewPipeline(i.Conns.Cloud, pendingPuts)
	if err != nil {
		t.Fatal(err)
	}
	defer sending.Close()
	for range events {
		if err := sending.Send(t.Context(), &nats.Msg{
			Subject: streams.SiteSubject(i.OrgID, i.SiteID), Data: text,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := sending.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	head, err := i.Log.Head(t.Context(), 0)
	if err != nil || head < uint64(events) {
		t.Fatalf(
			"last event of the directory: got %d, error %v, want at least %d", head, err, events,
		)
	}

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	dir, m := i.writeBackup(false)
	writing := time.Since(began)
	runtime.ReadMemStats(&after)
	if m.Directory != head {
		t.Errorf("last event of the backup: got %d, want %d", m.Directory, head)
	}
	began = time.Now()
	if _, err := Check(t.Context(), dir, 1, nil); err != nil {
		t.Fatal(err)
	}
	checking := time.Since(began)
	began = time.Now()
	to := restoreBackup(t, dir)
	restoring := time.Since(began)
	if got, err := to.Log.Head(t.Context(), 0); err != nil || got != head+3 {
		t.Errorf("last event after the restore: got %d, error %v, want %d", got, err, head+3)
	}
	t.Logf(
		"%d events, %d bytes: written in %v, checked in %v, restored in %v (with a check, to a "+
			"new broker); heap of broker and backup: %d MB before, %d MB after the backup",
		head, m.Bytes(), writing, checking, restoring, before.HeapInuse>>20, after.HeapInuse>>20,
	)
}
