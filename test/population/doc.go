// Package population fills an installation's directory with organizations that look as if they had
// been managed for months: sites, hubs, members, invitations, keys, device names.
//
// The domain's own rules decide every event, so the result is valid. Events are appended in
// batches, the fastest way to write many. Write returns the final content of every organization,
// against which tests compare what readers see.
package population
