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

// envEvents makes TestScale a large one: how many events the directory has.
const envEvents = "HUBCLOUD_TEST_BACKUP_EVENTS"

// TestScale takes and restores a long directory. Memory does not grow with it.
func TestScale(t *testing.T) {
	t.Parallel()
	events := 20_000
	if text := os.Getenv(envEvents); text != "" {
		var err error
		if events, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	i := newInstallation(t, 3, 0)
	event := domain.Record(
		domain.Origin{At: time.Now(), Actor: domain.Actor{Kind: domain.ActorOperator}},
		domain.SiteRenamed{
			OrgID:  i.org,
			SiteID: i.site,
			Name:   "A name as long as most of them are",
		},
	)
	event.ID = "01JD5Q3W8ZV6K2M4N7P9R1S3T5"
	text, err := domain.EncodeEvent(event)
	if err != nil {
		t.Fatal(err)
	}
	sending, err := jsapi.NewPipeline(i.conns.Cloud, putsAtOnce)
	if err != nil {
		t.Fatal(err)
	}
	defer sending.Close()
	for range events {
		if err := sending.Send(t.Context(), &nats.Msg{
			Subject: streams.SiteSubject(i.org, i.site), Data: text,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := sending.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	head, err := i.log.Head(t.Context(), 0)
	if err != nil || head < uint64(events) {
		t.Fatalf("the directory ends at %d, %v", head, err)
	}

	var before, peak runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	dir, m := i.take(false)
	took := time.Since(began)
	runtime.ReadMemStats(&peak)
	if m.Directory != head {
		t.Errorf("taken up to %d of %d", m.Directory, head)
	}
	began = time.Now()
	if _, err := Check(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	checked := time.Since(began)
	began = time.Now()
	to := restored(t, dir)
	back := time.Since(began)
	if got, err := to.log.Head(t.Context(), 0); err != nil || got != head+3 {
		t.Errorf("restored up to %d of %d, %v", got, head, err)
	}
	t.Logf(
		"%d events, %d bytes: taken in %v, checked in %v, restored in %v (with the check, on a new broker); "+
			"heap of broker and backup %d MB before, %d MB after",
		head,
		m.Bytes(),
		took,
		checked,
		back,
		before.HeapInuse>>20,
		peak.HeapInuse>>20,
	)
}
