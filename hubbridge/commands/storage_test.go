package commands_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/once"
)

// faultyLogs fails appends for which fail returns an error.
type faultyLogs struct {
	commands.Logs
	fail func(payload []byte) error
}

func (l faultyLogs) AppendCommand(
	ctx context.Context, hub domain.HubID, payload []byte,
) (uint64, error) {
	if err := l.fail(payload); err != nil {
		return 0, err
	}
	return l.Logs.AppendCommand(ctx, hub, payload)
}

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
			log := &logLines{}
			p := cloud.replicaWith("r1", func(logs commands.Logs) commands.Logs {
				return faultyLogs{logs, func(payload []byte) error {
					var one record
					if err := json.Unmarshal(payload, &one); err != nil {
						return err
					}
					if one.Type == tc.fails && full.Load() {
						return errors.New("the disk is full")
					}
					return nil
				}}
			}, func(c *commands.Config, _ *once.Config) {
				c.Logger = slog.New(slog.NewJSONHandler(log, nil))
			})
			channel, err := p.send(cloud.command("k"))
			if lines := log.commands(t); len(lines) != 1 || lines[0]["answer"] != tc.answer {
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
		fails int32 // appends that fail
		fault error
		code  domain.Code
	}{
		"a new leader":      {20, jsapi.ErrNoStream, ""},
		"a lost answer":     {2, jsapi.ErrOutcomeUnknown, ""},
		"no leader for 15s": {1 << 30, jsapi.ErrNoStream, domain.CodeServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := newTestCloud(t)
			var tries atomic.Int32
			p := cloud.replicaWith("r1", func(logs commands.Logs) commands.Logs {
				return faultyLogs{logs, func([]byte) error {
					if tries.Add(1) <= tc.fails {
						return fmt.Errorf("store: %w", tc.fault)
					}
					return nil
				}}
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

// TestLostAppend: an append that was stored is not repeated when its acknowledgement is lost.
func TestLostAppend(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	var lost atomic.Int32
	p := cloud.replicaWith(
		"r1", func(logs commands.Logs) commands.Logs { return lossyLogs{logs, &lost} },
	)
	channel, err := p.send(cloud.command("k"))
	cloud.wantAccepted(channel, err)
	cloud.wantRecords("requested accepted")
	if lost.Load() != 2 {
		t.Errorf("%d acknowledgements were lost, want 2", lost.Load())
	}
}

// lossyLogs stores each record and loses the acknowledgement.
type lossyLogs struct {
	commands.Logs
	lost *atomic.Int32
}

func (l lossyLogs) AppendCommand(
	ctx context.Context, hub domain.HubID, payload []byte,
) (uint64, error) {
	if _, err := l.Logs.AppendCommand(ctx, hub, payload); err != nil {
		return 0, err
	}
	l.lost.Add(1)
	return 0, fmt.Errorf("store: %w", jsapi.ErrOutcomeUnknown)
}
