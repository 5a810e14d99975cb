package commands_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// TestStorageFails: a command that cannot be recorded is not sent, and may be sent again under its
// key. An outcome that cannot be recorded does not change the answer. The command's log line named
// the hub as the source of the answer even if the command was not sent.
func TestStorageFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails  string
		asked  int
		answer string // in the log line
	}{
		"before": {"command.requested", 0, ""},
		"after":  {"command.answered", 1, "hub"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := newTestCloud(t)
			var full atomic.Bool
			full.Store(true)
			log := &streamstest.LogLines{}
			p := cloud.replica("r1", func(s *setup) {
				s.Logger = log.Logger()
				s.append = func(payload []byte, store func() (uint64, error)) (uint64, error) {
					if full.Load() && bytes.Contains(payload, []byte(tc.fails)) {
						return 0, errors.New("the disk is full")
					}
					return store()
				}
			})
			channel, err := p.send(cloud.command("k"))
			if lines := log.Of(t, "command"); len(lines) != 1 || lines[0]["answer"] != tc.answer {
				t.Errorf("log lines: got %v, want one with the answer %q", lines, tc.answer)
			}
			if tc.asked == 0 {
				wantCode(t, err, domain.CodeInternal)
			} else {
				cloud.wantAccepted(channel, err)
			}
			cloud.hub.wantRan(tc.asked, tc.asked)
			full.Store(false)
			channel, err = cloud.replica("r2").send(cloud.command("k"))
			cloud.wantAccepted(channel, err)
			cloud.hub.wantRan(1, 1)
		})
	}
}

// TestNoLeader: a command failed at once with internal_error ("no responders") while its hub's
// event log had no leader. It must wait for one, be recorded once although acknowledgements of
// appends are lost, and after 15 s without a leader fail with an error that nothing was sent.
func TestNoLeader(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails  int32 // appends that fail
		stored bool  // although they fail
		fault  error
		code   domain.Code
	}{
		"a new leader":                     {20, false, jsapi.ErrNoStream, ""},
		"a lost request":                   {2, false, jsapi.ErrOutcomeUnknown, ""},
		"the answers of both appends lost": {2, true, jsapi.ErrOutcomeUnknown, ""},
		"no leader for 15s": {
			1 << 30, false, jsapi.ErrNoStream, domain.CodeServiceUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := newTestCloud(t)
			var tries atomic.Int32
			p := cloud.replica("r1", func(s *setup) {
				s.append = func(_ []byte, store func() (uint64, error)) (uint64, error) {
					if tries.Add(1) > tc.fails {
						return store()
					}
					if tc.stored {
						if _, err := store(); err != nil {
							t.Error(err)
						}
					}
					return 0, fmt.Errorf("store: %w", tc.fault)
				}
			})
			began := time.Now()
			channel, err := p.send(cloud.command("k"))
			if tc.code != "" {
				wantCode(t, err, tc.code)
				if took := time.Since(began); took < 14*time.Second ||
					!strings.Contains(err.Error(), "not sent to the hub") {
					t.Errorf("%v after %v", err, took)
				}
				cloud.hub.wantRan(0, 0)
				return
			}
			cloud.wantAccepted(channel, err)
			cloud.hub.wantRan(1, 1)
			cloud.wantRecords("requested accepted")
		})
	}
}
