package devicestate_test

import (
	"testing"
	"time"

	"hubcloud/projections/devicestate"
)

// BenchmarkFold folds reports of a channel.
func BenchmarkFold(b *testing.B) {
	b.ReportAllocs()
	event := []byte(`{"type":"channel.observed","time":"2026-03-04T05:06:07.123456Z","device_id":7,` +
		`"data":{"key":"temperature","endpoint":0,"value":21.5}}`)
	at := time.Date(2026, 3, 4, 5, 6, 8, 0, time.UTC)
	var hub devicestate.Hub
	for seq := uint64(1); b.Loop(); seq++ {
		if err := hub.Fold(devicestate.Entry{Seq: seq, Time: at, Event: event}); err != nil {
			b.Fatal(err)
		}
	}
}
