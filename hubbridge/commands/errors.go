package commands

import (
	"errors"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// notSent translates an error of a command that was not sent: a temporary fault is
// service_unavailable, any other error stays what it is.
func (c *Commands) notSent(err error) error {
	return c.temporary(
		err, "the command could not be recorded at the moment; it was not sent to the hub",
	)
}

// maybeSent is notSent for a command that may have reached the hub.
func (c *Commands) maybeSent(err error) error {
	return c.temporary(
		err,
		"the command could not be finished; the hub may have it: send it again with the same "+
			"Idempotency-Key",
	)
}

func (c *Commands) temporary(err error, message string) error {
	var apiError *domain.Error
	if err != nil && c.isAborted() && !errors.As(err, &apiError) {
		return domain.UnavailableBecause(err, "%s", message)
	}
	return jsapi.Unavailable(err, "%s", message)
}
