// Package population fills the directory of an installation with organizations as if they had been
// managed for months: sites, hubs, members, invitations, keys, names of devices. Every event is one
// that the domain's own rules decided on; they go into the log in batches, as fast as it takes
// them, by as many as an append takes. What is in an organization at the end is known, so that
// readers can be held to it.
package population
