package feed

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// Commands returns the newest commands of a log that has events in between and more messages than
// one answer of the broker. A hub without a log has no commands.
func TestCommandsAreFoundAmongEvents(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	begun := time.Now().Add(-time.Minute)
	last := uint64(0)
	const commands = 700
	for n := range commands {
		if n%100 == 0 {
			last = f.append(hubA, last, n/100*3+1, 3)
		}
		if _, err := f.AppendCommand(t.Context(), hubA, fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 2, commands, 2 * commands} {
		records, err := f.CommandRecords(t.Context(), hubA, begun, limit)
		if err != nil || len(records) != min(limit, commands) {
			t.Fatalf("Commands with limit %d = %d records, %v", limit, len(records), err)
		}
		for i, record := range records {
			if want := fmt.Append(nil, commands-len(records)+i); !slices.Equal(record.Payload, want) {
				t.Fatalf("record %d of %d is %s, want %s", i, limit, record.Payload, want)
			}
		}
	}
	records, err := f.CommandRecords(t.Context(), hubA, begun, commands)
	streamstest.Must(t, err)
	page, err := f.Page(t.Context(), hubA, records[150].Position, 500)
	if want := 3 * (commands/100 - 2); err != nil || len(page.Events) != want {
		t.Errorf("after command 150: %d events, %v; want the %d that follow it", len(page.Events), err, want)
	}
	for hub, since := range map[domain.HubID]time.Time{
		hubA: time.Now().Add(time.Minute), "hub-none-none-none": begun,
	} {
		if records, err := f.CommandRecords(t.Context(), hub, since, 10); err != nil || len(records) != 0 {
			t.Errorf("Commands of %s since %v = %v, %v; want none", hub, since, records, err)
		}
	}
}
