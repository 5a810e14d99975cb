package portal

import (
	"time"

	"hubcloud/domain"
)

// outcomeTime is how long after a command a different report is taken as the command's outcome.
// Later the device was operated by hand or by a rule.
const outcomeTime = time.Minute

// statusTexts returns the short text and the explanation of a channel's status. Both are empty for
// a channel without a command under way, failed or undone.
func statusTexts(c domain.Channel, view deviceChannel) (tag, explanation string) {
	switch c.Status {
	case domain.ChannelPending:
		if texts, ok := pendingTexts[c.Key]; ok && isBool(c.Desired) {
			return texts[string(c.Desired)], ""
		}
		return fill(settingTo, "value", view.DesiredText), ""
	case domain.ChannelDiverged:
		if desiredAt := timeOf(c.DesiredAt); !desiredAt.IsZero() &&
			view.ObservedAt.Sub(desiredAt) > outcomeTime {
			return changedTag, fill(
				changedText, "value", view.Text, "wanted", view.DesiredText,
			)
		}
		pattern, ok := notDoneTexts[c.Key]
		if !ok {
			pattern = notDoneOther
		}
		return notDoneTag, fill(pattern, "value", view.Text, "wanted", view.DesiredText)
	case domain.ChannelFailed:
		return failedTag, fill(failedText, "wanted", view.DesiredText)
	}
	return "", ""
}

func isBool(value []byte) bool { return string(value) == "true" || string(value) == "false" }

// timeOf returns a time of a hub's answer, zero for none or an invalid one.
func timeOf(at *string) time.Time {
	if at == nil {
		return time.Time{}
	}
	t, _ := time.Parse(domain.TimeLayout, *at) // zero if it is invalid
	return t
}
