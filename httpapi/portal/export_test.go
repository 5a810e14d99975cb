package portal

// MaskToken returns a form token as it stands on pages.
var MaskToken = maskToken
