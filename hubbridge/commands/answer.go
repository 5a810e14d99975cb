package commands

import (
	"encoding/json"
	"fmt"

	"hubcloud/domain"
	"hubcloud/streams/once"
)

// answer is a final answer as the reservation stores it: either the channel from the hub's answer,
// or the hub's error.
type answer struct {
	Channel *domain.Channel `json:"channel,omitempty"`
	once.FinalError
}

// finalAnswer returns the answer to remember; nil if the same command, sent again, may have another
// outcome.
func finalAnswer(channel domain.Channel, err error) *answer {
	if err == nil {
		return &answer{Channel: &channel}
	}
	final, ok := once.NewFinalError(
		err, domain.CodeNotFound, domain.CodeInvalidRequest, domain.CodeCommandRefused,
	)
	if !ok {
		return nil
	}
	return &answer{FinalError: final}
}

// restoreAnswer decodes a remembered answer, which is a result or an error.
func restoreAnswer(remembered []byte) (domain.Channel, error) {
	var a answer
	if err := json.Unmarshal(remembered, &a); err != nil {
		return domain.Channel{}, fmt.Errorf("commands: decode remembered answer: %w", err)
	}
	if a.Channel == nil {
		return domain.Channel{}, a.Err()
	}
	return *a.Channel, nil
}
