"""The model: latent attention, mixture of experts, exchange of weights with Hugging Face."""
