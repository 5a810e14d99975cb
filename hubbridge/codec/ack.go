package codec

import (
	"strconv"

	"hubcloud/domain"
)

// AppendAck appends a protocol.Ack of a hub's log. The log must be valid (ValidLog).
func AppendAck(out []byte, log string, through uint64) []byte {
	out = append(append(out, `{"log":"`...), log...)
	out = strconv.AppendUint(append(out, `","through":`...), through, 10)
	return append(out, '}')
}

// AppendLogResetData appends the data of a hub.log_reset event.
func AppendLogResetData(out []byte, reason domain.LogResetReason) []byte {
	return append(append(append(out, `{"reason":"`...), reason...), `"}`...)
}

// AppendSkipData appends the data of a hub.events_skipped event for the numbers from from to to.
// flaw is the reason if the event was malformed; "" for events that the hub no longer has.
func AppendSkipData(out []byte, from, to uint64, flaw Flaw) []byte {
	out = strconv.AppendUint(append(out, `{"from":`...), from, 10)
	out = strconv.AppendUint(append(out, `,"to":`...), to, 10)
	if flaw != "" {
		out = append(append(append(out, `,"reason":"`...), flaw...), '"')
	}
	return append(out, '}')
}
