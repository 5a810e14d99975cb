package portal

import (
	"context"
	"errors"

	"hubcloud/domain"
)

// errSentBefore is the refusal of a form that was sent already.
var errSentBefore = domain.Errorf(
	domain.CodeIdempotencyConflict, "this form was sent before, and what it asks for was done then",
)

// once does what a form asks for, unless that was done before: errSentBefore for a second click,
// and when its answer is loaded again. Each form that makes something has a mark of its own from
// the page that it stood on. One that was refused, or failed, may be sent again.
func (v *visit) once(do func() error) error {
	mark := v.field("once")
	if mark == "" {
		return errForged
	}
	first, err := v.p.SignIn.Once(v.r.Context(), v.token, mark)
	if err != nil {
		return err
	}
	if !first {
		return errSentBefore
	}
	if err = do(); err != nil {
		// Also when nobody waits for the answer any more: whoever comes back to the form sends it
		// again.
		err = errors.Join(
			err, v.p.SignIn.Unsent(context.WithoutCancel(v.r.Context()), v.token, mark),
		)
	}
	return err
}
