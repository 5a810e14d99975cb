package portal

import "hubcloud/domain"

// errSentBefore is the refusal of a form that was sent already.
var errSentBefore = domain.Errorf(domain.CodeIdempotencyConflict, "this form was sent before, and what it asks for was done then")

// once refuses a form that was sent before: by a second click, by loading its answer again, or by going back to it. Each form that makes something has a
// mark of its own from the page that it stood on.
func (v *visit) once() error {
	mark := v.field("once")
	if mark == "" {
		return errForged
	}
	first, err := v.p.SignIn.Once(v.r.Context(), v.token, mark)
	if err == nil && !first {
		err = errSentBefore
	}
	return err
}
