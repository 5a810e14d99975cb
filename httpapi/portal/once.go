package portal

import (
	"context"
	"errors"

	"hubcloud/domain"
)

// errAlreadySubmitted is the apiErr of a form that was sent already.
var errAlreadySubmitted = domain.Errorf(
	domain.CodeIdempotencyConflict, "this form was sent before, and what it asks for was done then",
)

// once does what a form asks for, unless that was done before: errAlreadySubmitted for a second
// click, and when its answer is loaded again. Each form that makes something has a mark of its own
// from the page that it stood on. One that was refused, or failed, may be sent again.
func (req *request) submitOnce(do func() error) error {
	mark := req.formValue("once")
	if mark == "" {
		return errForgedForm
	}
	first, err := req.portal.SignIn.Once(req.http.Context(), req.token, mark)
	if err != nil {
		return err
	}
	if !first {
		return errAlreadySubmitted
	}
	if err = do(); err != nil {
		// Also when nobody waits for the answer any more: whoever comes back to the form sends it
		// again.
		err = errors.Join(
			err,
			req.portal.SignIn.Unsent(context.WithoutCancel(req.http.Context()), req.token, mark),
		)
	}
	return err
}
