"""Training of the demo's parts; models.demo.train runs them as stages.

data.py        the data set on disk; feeder.py: batches of it with captions
vq_codes.py    the codes; vq_model.py, vq_decoder.py, vq_train.py: the image decoder
text.py        tokenizer and text encoder; model.py, ar_train.py, muon.py: the GPT
encoder.py     the image encoder; generated.py: the images it learns from; bundled.py: a bundle's image decoder
classifier.py  the classifier of the evaluation
"""
