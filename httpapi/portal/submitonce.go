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

// finishForm answers a form of the organization: with a redirect to a page that shows the notice, or,
// if the form was rejected, with again, which shows it with the problem.
func (req *request) finishForm(
	err error, page, notice string, again func(status int, problem string) error,
) error {
	if problem, rejected := rejectionText(err); rejected {
		return again(rejectionStatus(err), problem)
	}
	return req.finish(err, page, notice)
}

// finish answers a form that has no page of its own, as finishForm.
func (req *request) finish(err error, page, notice string) error {
	if err == nil {
		req.redirectInOrg(page, notice)
	}
	return err
}

// submitOnce runs the action of a form. A form that was submitted before, by a double click or a
// reload of its answer, is errAlreadySubmitted. Forms that create something carry a submission id
// in the field `once`, which their page chose. A form whose action failed may be submitted again.
func (req *request) submitOnce(action func() error) error {
	form := req.formValue("once")
	if form == "" {
		return errForgedForm
	}
	first, err := req.SignIn.ClaimForm(req.ctx, req.token, form)
	if err != nil {
		return err
	}
	if !first {
		return errAlreadySubmitted
	}
	if err = action(); err != nil {
		// Release the form even if the client has gone: the person may submit it again.
		ctx := context.WithoutCancel(req.ctx)
		err = errors.Join(err, req.SignIn.ReleaseForm(ctx, req.token, form))
	}
	return err
}
