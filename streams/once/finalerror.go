package once

import (
	"errors"
	"slices"

	"hubcloud/domain"
)

// FinalError is an API error in a final answer as it is stored. The structs of answers embed it.
type FinalError struct {
	Code    domain.Code `json:"code,omitempty"`
	Message string      `json:"message,omitempty"`
}

// NewFinalError returns the API error in err's chain; false unless it has one of the final codes.
// After any other error the same request may have another outcome.
func NewFinalError(err error, final ...domain.Code) (FinalError, bool) {
	var apiError *domain.Error
	if !errors.As(err, &apiError) || !slices.Contains(final, apiError.Code) {
		return FinalError{}, false
	}
	return FinalError{Code: apiError.Code, Message: apiError.Message}, true
}

// Err returns the error as the request returned it the first time.
func (e FinalError) Err() error { return &domain.Error{Code: e.Code, Message: e.Message} }
