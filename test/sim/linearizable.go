package sim

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// The kinds of operations on a hub's log, whose state is the number of its values.
const (
	appended = iota // a hub's value was stored, between its emission and its ack
	read            // a page ended with the value
	seenBy          // a tail has seen the value
)

// operation is one operation of a client.
type operation struct {
	kind, value, client int
	begun, ended        time.Time
}

// logModel is the log of one hub: values are appended in order, a page has everything, and a tail
// nothing that is not stored.
var logModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, _ any) (bool, any) {
		length, op := state.(int), input.(operation)
		switch op.kind {
		case appended:
			return op.value == length+1, op.value
		case read:
			return op.value == length, length
		default:
			return op.value <= length, length
		}
	},
}

// checkLinearizable checks that appends, pages and tails of one log, at all replicas, are
// linearizable.
func checkLinearizable(w *World, h *Hub, history []operation) {
	client := 2 * len(w.Replicas) // after those of pollers and followers
	for i, v := range h.Values() {
		if !v.acked.IsZero() {
			history = append(history, operation{appended, i + 1, client + i, v.emitted, v.acked})
		}
	}
	var ops []porcupine.Operation
	for _, op := range history {
		ops = append(ops, porcupine.Operation{
			ClientId: op.client, Input: op,
			Call: op.begun.UnixNano(), Return: op.ended.UnixNano(),
		})
	}
	if !porcupine.CheckOperations(logModel, ops) {
		w.Failf("%s: appends, pages and tails are not linearizable%s", h.ID, staleRead(history))
	}
}

// staleRead describes a page that lacks what was known before it was asked for.
func staleRead(history []operation) string {
	kinds := []string{"was acknowledged", "was on a page", "was seen by a tail"}
	for _, page := range history {
		for _, op := range history {
			if page.kind == read && op.value > page.value && op.ended.Before(page.begun) {
				return fmt.Sprintf(
					": a page of client %d ends at %d, asked for at %s, but %d %s for client %d at %s",
					page.client, page.value, clock(page.begun), op.value, kinds[op.kind], op.client,
					clock(op.ended),
				)
			}
		}
	}
	return ""
}

// clock is a time as in the trace, which begins with the bubble.
func clock(t time.Time) string {
	return fmt.Sprintf("%.6f", t.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Seconds())
}
