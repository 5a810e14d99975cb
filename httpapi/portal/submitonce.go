package portal

import (
	"context"
	"errors"

	"hubcloud/domain"
)

// errAlreadySubmitted is the error of a form that was submitted before.
var errAlreadySubmitted = domain.Errorf(
	domain.CodeIdempotencyConflict, "this form was submitted before, and its action is done",
)

// submitOnce runs the action of a form. A form that was submitted before, by a double click or a
// reload of its answer, is errAlreadySubmitted. Forms that create something carry a submission id
// in the field `once`, which their page chose. A form whose action failed may be submitted again.
func (req *request) submitOnce(action func() error) error {
	form := req.formValue("once")
	if form == "" {
		return errForgedForm
	}
	first, err := req.portal.SignIn.ClaimForm(req.http.Context(), req.token, form)
	if err != nil {
		return err
	}
	if !first {
		return errAlreadySubmitted
	}
	if err = action(); err != nil {
		// Release the form even if the client has gone: the person may submit it again.
		ctx := context.WithoutCancel(req.http.Context())
		err = errors.Join(err, req.portal.SignIn.ReleaseForm(ctx, req.token, form))
	}
	return err
}
